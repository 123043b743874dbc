import type { JsonObject } from "../../../kernel/json/json.ts";
import type { BucketAccessor } from "./storage.ts";
import type { DatabaseAccessor } from "./tables.ts";

/**
 * Access with the rights of a user: rules, hooks and limits apply as over HTTP, and a refusal is the `AppError` that HTTP would
 * answer. `get` returns null for a record or file that the user may not see. Areas that users cannot reach over HTTP are absent
 * (kv, sql, vectors, users, push, jobs).
 */
export interface UserAccess {
  db(namespace: string, instanceId?: string): DatabaseAccessor;
  storage(bucket: string): BucketAccessor;
  /** Broadcasts to all subscribers of the channel. Errors: 401, 403 by the rule of broadcasts; 400, 413, 503. */
  broadcast(channel: string, event: string, payload: JsonObject): Promise<void>;
}
