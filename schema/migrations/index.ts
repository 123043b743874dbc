import analytics1 from "./analytics/0001_analytics.sql" with { type: "text" };
import analytics2 from "./analytics/0002_since.sql" with { type: "text" };
import analytics3 from "./analytics/0003_targets.sql" with { type: "text" };
import audit1 from "./audit/0001_audit.sql" with { type: "text" };
import jobs1 from "./jobs/0001_jobs.sql" with { type: "text" };
import jobs2 from "./jobs/0002_answer.sql" with { type: "text" };
import kv1 from "./kv/0001_entries.sql" with { type: "text" };
import rooms1 from "./rooms/0001_rooms.sql" with { type: "text" };
import rooms2 from "./rooms/0002_wake.sql" with { type: "text" };
import system1 from "./system/0001_auth.sql" with { type: "text" };
import system2 from "./system/0002_storage.sql" with { type: "text" };
import system3 from "./system/0003_push.sql" with { type: "text" };
import system4 from "./system/0004_sign_in.sql" with { type: "text" };
import system5 from "./system/0005_user_search.sql" with { type: "text" };
import system6 from "./system/0006_sessions.sql" with { type: "text" };
import system7 from "./system/0007_versions.sql" with { type: "text" };
import system8 from "./system/0008_signed_in.sql" with { type: "text" };
import system9 from "./system/0009_identity_verified.sql" with { type: "text" };
import system10 from "./system/0010_receipts.sql" with { type: "text" };
import system11 from "./system/0011_admin.sql" with { type: "text" };
import system12 from "./system/0012_usage.sql" with { type: "text" };
import system13 from "./system/0013_instance_creators.sql" with { type: "text" };
import system14 from "./system/0014_addresses.sql" with { type: "text" };
import system15 from "./system/0015_claims.sql" with { type: "text" };
import system16 from "./system/0016_user_records.sql" with { type: "text" };
import system17 from "./system/0017_people.sql" with { type: "text" };
import system18 from "./system/0018_asked_changes.sql" with { type: "text" };
import system19 from "./system/0019_merged_accounts.sql" with { type: "text" };
import system20 from "./system/0020_merged_claims.sql" with { type: "text" };
import system21 from "./system/0021_issuers.sql" with { type: "text" };
import system22 from "./system/0022_provider_tokens.sql" with { type: "text" };
import tables1 from "./tables/0001_server.sql" with { type: "text" };
import tables2 from "./tables/0002_instants.sql" with { type: "text" };
import vectorize1 from "./vectorize/0001_index.sql" with { type: "text" };
import vectorize2 from "./vectorize/0002_chunks.sql" with { type: "text" };

/** The tables of the server in one kind of file, as the migration steps that lead to them. */
export interface FileLayout {
  /** Name of its folder here, also for messages. */
  name: string;
  /** Steps in order; a released step is never changed. Their number is the version of an up-to-date file. */
  steps: readonly string[];
  /** SQL that returns the version of a file that has tables and no version: it was made before files had one. */
  unversioned: string;
}

/** Version 0: the first steps keep existing tables, so they can run again. */
const RUN_AGAIN = "SELECT 0";

export const analyticsLayout: FileLayout = {
  name: "analytics",
  steps: [analytics1, analytics2, analytics3],
  unversioned: "SELECT 2 * EXISTS (SELECT 1 FROM pragma_table_info('summarized') WHERE name = 'since')",
};

export const auditLayout: FileLayout = { name: "audit", steps: [audit1], unversioned: "SELECT 0" };

export const jobsLayout: FileLayout = { name: "jobs", steps: [jobs1, jobs2], unversioned: "SELECT 0" };

export const kvLayout: FileLayout = { name: "kv", steps: [kv1], unversioned: RUN_AGAIN };

export const roomsLayout: FileLayout = { name: "rooms", steps: [rooms1, rooms2], unversioned: RUN_AGAIN };

export const systemLayout: FileLayout = {
  name: "system",
  steps: [
    system1,
    system2,
    system3,
    system4,
    system5,
    system6,
    system7,
    system8,
    system9,
    system10,
    system11,
    system12,
    system13,
    system14,
    system15,
    system16,
    system17,
    system18,
    system19,
    system20,
    system21,
    system22,
  ],
  unversioned: "SELECT count(*) FROM _migrations",
};

export const tablesLayout: FileLayout = { name: "tables", steps: [tables1, tables2], unversioned: RUN_AGAIN };

/** Layout of vector files. `{{…}}` in its steps is filled in from the config: sqlite-vec requires numbers in its DDL. */
export const vectorizeLayout: FileLayout = {
  name: "vectorize",
  steps: [vectorize1, vectorize2],
  unversioned: "SELECT 2 - EXISTS (SELECT 1 FROM pragma_table_list('vectors') WHERE type = 'table')",
};
