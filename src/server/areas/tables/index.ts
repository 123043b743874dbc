import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import type { AccountMembers, AccountRecords } from "../../access/account-records.ts";
import type { Account } from "../../access/accounts.ts";
import type { ServiceKeys } from "../../access/keys/service-keys.ts";
import { type Principal, SERVER } from "../../access/principal.ts";
import type { Principals } from "../../access/principals.ts";
import type { RecordFiles } from "../../access/record-files.ts";
import type { AppAccess, DatabaseAccessor, ServerDatabaseAccessor } from "../../config/app/index.ts";
import type { UsersPlace } from "../../config/sections/users-table.ts";
import type { NamespaceConfig, RateLimit } from "../../config/types.ts";
import type { DatabaseFile, RecordChange, StorageEngine } from "../../db/index.ts";
import { createDatabaseAccessor } from "./accessor.ts";
import { createEmbeddings } from "./embeddings/index.ts";
import type { EmbedQueue } from "./embeddings/job.ts";
import { type DescribedTables, describeTables } from "./endpoints/document.ts";
import { tableEndpoints, transactionEndpoints } from "./endpoints/endpoints.ts";
import { instanceEndpoints, instancesOf } from "./endpoints/instance-endpoints.ts";
import { referrerEndpoints } from "./endpoints/referrer-endpoints.ts";
import { sizeEndpoints } from "./endpoints/size-endpoints.ts";
import { trialEndpoints } from "./endpoints/trial-endpoints.ts";
import { createFileReferences } from "./files/references.ts";
import { isInstanceId } from "./model/model.ts";
import { type FileAddress, type StoredTables, storedTables } from "./query/sources.ts";
import { createSubjectFilters } from "./query/subject-filters.ts";
import { type ExportedRecord, exportedRecords } from "./records/exported.ts";
import { type Course, countFarReferrers, farReferringPlaces, tableIn } from "./records/far-referrers.ts";
import {
  type InstanceListener,
  type Namespace,
  openNamespaces,
  type Table,
  type TablesChangeListener,
  type TablesCommitListener,
  type TablesOutbox,
} from "./records/namespaces.ts";
import { createTenants } from "./records/tenants.ts";
import { createAccountRecords } from "./records/user-records.ts";
import { createTableService } from "./service.ts";
import { createFollowers } from "./tombstones/followers.ts";
import type { PrepareJob } from "./transactions/handle.ts";
import { createTrials } from "./trial/trial.ts";

export { embedsAny } from "./embeddings/index.ts";

export type TablesArea = ReturnType<typeof createTablesArea>;

/** Opens the declared namespaces. Errors: a declaration that would lose data; a file that cannot be opened. */
export function createTablesArea(deps: {
  databases: Readonly<Record<string, NamespaceConfig>>;
  engine: StorageEngine;
  /** Directory of the database files. */
  directory: string;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  ids: Ids;
  logger: Logger;
  app: () => AppAccess;
  onChange: TablesChangeListener;
  /** Called when an instance was deleted. */
  onDelete: InstanceListener;
  /** Called when the content of an instance was replaced. */
  onReplace: InstanceListener;
  onCommit: TablesCommitListener;
  outbox: TablesOutbox;
  systemFile: DatabaseFile;
  /** Records a request's changes in the audit log. */
  audit: RecordChange;
  /** Prepares the jobs of `tx.enqueue`. */
  prepareJob: PrepareJob;
  /** Equal as long as constant rules show the same records of the tables, across restarts. */
  viewsKey: string;
  /** The accounts, to fill a new table of users with. */
  accounts: () => Iterable<AccountMembers>;
  /** Resolves when accounts have what updates of their records have asked for. */
  accountsChanged: () => Promise<void>;
  /** Finds a user for trials of rules; null when there is none. */
  account: (id: string) => Account | null;
  /** The bytes of records' files. */
  files: () => RecordFiles;
  serviceKey: ServiceKeys["named"];
  /** A key for signed urls of files is derived from this. */
  secret: string;
  /** Origin of signed urls; null: the address that the request was sent to. */
  publicUrl: string | null;
  queue: EmbedQueue;
  /** Bound of the searches by meaning of one caller. */
  embeddingsLimit: RateLimit;
  /** Path of sqlite-vec, where a table has vectors. */
  vectorLibrary: () => string;
}) {
  const embeddings = createEmbeddings({ ...deps, namespace: (name) => namespaces.get(name) ?? null });
  const namespaces: ReadonlyMap<string, Namespace> = openNamespaces({
    ...deps,
    onOpened: embeddings.opened,
    catchUp: (namespace, file) => followers.opened(namespace, file),
    onChange(address, groups, seqs) {
      deps.onChange(address, groups, seqs);
      embeddings.announced(address, groups);
      if (address.instanceId === null) followers.announced(address.namespace, groups);
    },
  });
  const followers = createFollowers({ ...deps, namespaces });
  embeddings.begin(namespaces);
  const service = createTableService({ ...deps, namespaces, followers });
  const instances = (namespace: string) => instancesOf(namespaces, namespace);
  const counting = new Scheduler();
  const farPlaces = (referred: { table: Table; id: string }, course: Course) =>
    farReferringPlaces({ namespaces, logger: deps.logger }, referred, course);
  return {
    endpoints: [
      ...tableEndpoints(service),
      ...transactionEndpoints(service),
      ...instanceEndpoints(instances, deps.audit),
      ...sizeEndpoints(service.measure),
      ...referrerEndpoints(service.countReferrers),
      ...trialEndpoints(createTrials({ ...deps, namespaces }), deps.account),
    ],
    /** Returns the declared tables for the OpenAPI document. */
    describe: (): DescribedTables => describeTables(namespaces, service),
    /**
     * Returns `app.db(…)` for the server itself or a user. Errors, at the first use: 404 when the namespace or table is not
     * declared.
     */
    accessor: (principal: Principal, namespace: string, instanceId?: string): DatabaseAccessor =>
      createDatabaseAccessor(service, principal, namespace, instanceId ?? null),
    /** Returns `app.db(…)` for the server itself, with the instances of the namespace. */
    serverAccessor: (namespace: string, instanceId?: string): ServerDatabaseAccessor => ({
      ...createDatabaseAccessor(service, SERVER, namespace, instanceId ?? null),
      instances: instances(namespace),
    }),
    /** Rights and filters for realtime. */
    door: service.door,
    /** Filters of triggers and webhooks. */
    filters: createSubjectFilters(namespaces),
    /** Returns the file of a declared static namespace, or of an instance; null when it does not exist. */
    file(name: string, instanceId: string | null): DatabaseFile | null {
      const namespace = namespaces.get(name);
      if (namespace === undefined) return null;
      if (namespace.kind === "static") return namespace.file;
      return instanceId === null ? null : namespace.instances.get(instanceId, { create: false });
    },
    /** Returns the path of an instance's file that a reader in another process may open now: see `InstanceFiles.lendable`. */
    lendable(name: string, instanceId: string): string | null {
      const namespace = namespaces.get(name);
      return namespace?.kind === "dynamic" && isInstanceId(instanceId)
        ? namespace.instances.lendable(instanceId)
        : null;
    },
    /** Returns the file of a namespace or an instance, and the tables that are stored in it. Errors: 404. */
    stored: (address: FileAddress): StoredTables => storedTables(namespaces, address),
    /** The instances, to be restored. */
    tenants: createTenants(namespaces),
    /** Looks up which files records have. */
    fileReferences: createFileReferences(namespaces),
    /** Returns the records of the accounts, in the table of users. */
    accountRecords(place: UsersPlace): AccountRecords {
      const users = usersIn(namespaces, place);
      return createAccountRecords({
        ...users,
        clock: deps.clock,
        countFar(id, signal) {
          const course = { pace: counting.pace(), signal };
          return countFarReferrers(farPlaces({ table: users.users, id }, course), id, course);
        },
      });
    },
    /** Yields the records of a user's export, as far as the caller may read them. Ends with the signal's reason. */
    exportedRecords(
      place: UsersPlace,
      principal: Principal,
      userId: string,
      signal: AbortSignal,
    ): AsyncIterable<ExportedRecord> {
      const { users: target, file, tableOf } = usersIn(namespaces, place);
      const own = { namespace: place.namespace, instanceId: null, target, file, tableOf, ready: () => file.ready() };
      const others = (course: Course) => farPlaces({ table: target, id: userId }, course);
      return exportedRecords({ service, own, others }, principal, userId, signal);
    },
    /** Lookups for the context of other areas' rules. */
    lookups: service.lookups,
    /** Ends references to records that were deleted in other files, before anything is answered, and goes on with that. */
    begin: (): Promise<void> => followers.start(),
    /** Waits for the hooks after writes. The engine closes the files. */
    async stop(): Promise<void> {
      embeddings.stop();
      await followers.stop();
      await service.stop();
    },
  };
}

/** Returns the table of users and its file. */
function usersIn(namespaces: ReadonlyMap<string, Namespace>, { namespace, table }: UsersPlace) {
  const found = namespaces.get(namespace);
  const users = found?.tables.get(table);
  if (found?.kind !== "static" || users === undefined) throw new Error("the table of users is not declared");
  return { file: found.file, users, tableOf: tableIn(found.tables) };
}
