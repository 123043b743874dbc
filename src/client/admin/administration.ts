import { systemRuntime } from "../runtime.ts";
import type { Transport } from "../transport/types.ts";
import type { AdminBackups } from "./backups.ts";
import { createBackups } from "./backups.ts";
import { type AdminAnalytics, type AdminAudit, createAnalytics, createAudit } from "./history.ts";
import { type AdminRealtime, type AdminRooms, createAdminRealtime, createAdminRooms } from "./live.ts";
import type { AdminJobs, Instances } from "./operations.ts";
import { type AdminBroadcast, createAdminBroadcast, createInstances, createJobs } from "./operations.ts";
import type { AdminPush } from "./push.ts";
import { createAdminPush } from "./push.ts";
import type { AdminBuckets, KeyValue, Sql, Vectors } from "./stores.ts";
import { createBuckets, createKeyValue, createSql, createTableSql, createVectors } from "./stores.ts";
import { type AdminTables, createAdminTables } from "./tables.ts";
import { type AdminUsers, createUsers } from "./users.ts";

/**
 * Operations of a service key besides tables and files, shared by scripts and the dashboard. Failed calls reject with
 * `PlatformError`.
 */
export interface Administration {
  readonly users: AdminUsers;
  /** Sizes of tables, and evaluation of their rules. For records, use `db`. */
  readonly tables: AdminTables;
  kv(namespace: string): KeyValue;
  sql(database: string): Sql;
  /** Queries of the tables of a namespace, with the root key. `instanceId` is needed where the namespace has instances. */
  tableSql(namespace: string, instanceId?: string): Sql;
  vectors(index: string): Vectors;
  /** Limits, quotas and unfinished uploads of buckets. For files, use `storage`. */
  readonly buckets: AdminBuckets;
  readonly push: AdminPush;
  broadcast(name: string): AdminBroadcast;
  readonly jobs: AdminJobs;
  instances(namespace: string): Instances;
  /** Changes made by keys and administrators, and sign-ins. */
  readonly audit: AdminAudit;
  readonly analytics: AdminAnalytics;
  /** Rooms that are live. */
  readonly rooms: AdminRooms;
  readonly realtime: AdminRealtime;
  readonly backups: AdminBackups;
}

export const createAdministration = (transport: Transport): Administration => ({
  users: createUsers(transport),
  tables: createAdminTables(transport),
  kv: (namespace) => createKeyValue(transport, namespace),
  sql: (database) => createSql(transport, database),
  tableSql: (namespace, instanceId) => createTableSql(transport, namespace, instanceId),
  vectors: (index) => createVectors(transport, index),
  buckets: createBuckets(transport),
  push: createAdminPush(transport),
  broadcast: (name) => createAdminBroadcast(transport, name),
  jobs: createJobs(transport),
  instances: (namespace) => createInstances(transport, namespace),
  audit: createAudit(transport),
  analytics: createAnalytics(transport),
  rooms: createAdminRooms(transport),
  realtime: createAdminRealtime(transport),
  backups: createBackups(transport, systemRuntime),
});
