import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Auth } from "../identity.ts";
import type { UserAccess } from "./as.ts";
import type { JobsAccessor, MailAccessor } from "./jobs.ts";
import type { PushAccessor } from "./push.ts";
import type { BucketAccessor } from "./storage.ts";
import type { KeyValueAccessor, SqlAccessor, VectorAccessor } from "./stores.ts";
import type { ServerDatabaseAccessor } from "./tables.ts";
import type { UsersAccessor } from "./users.ts";

export type * from "./as.ts";
export type * from "./jobs.ts";
export type * from "./push.ts";
export type * from "./queries.ts";
export type * from "./storage.ts";
export type * from "./stores.ts";
export type * from "./tables.ts";
export type * from "./transactions.ts";
export type * from "./users.ts";

/** The server's own access to its areas, for hooks, rooms and embedders. It bypasses all rules. */
export interface AppAccess {
  db(namespace: string, instanceId?: string): ServerDatabaseAccessor;
  storage(bucket: string): BucketAccessor;
  kv(name: string): KeyValueAccessor;
  sql(name: string): SqlAccessor;
  vectors(name: string): VectorAccessor;
  broadcast(channel: string, event: string, payload: JsonObject): Promise<void>;
  /** Returns access with the rights of this user, as rules, hooks and routes receive it; null: with those of an anonymous caller. */
  as(auth: Auth | null): UserAccess;
  readonly jobs: JobsAccessor;
  readonly mail: MailAccessor;
  readonly push: PushAccessor;
  readonly users: UsersAccessor;
}
