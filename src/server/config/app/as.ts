import type { JsonObject } from "../../../kernel/json/json.ts";
import type { BucketAccessor } from "./storage.ts";
import type { DatabaseAccessor } from "./tables.ts";

/**
 * What a user may do: rules, hooks and limits apply as over HTTP, and a refusal is the `AppError` that HTTP would answer. A record
 * or file that the user may not see is null to `get`. What users cannot do over HTTP (kv, sql, vectors, users, push, jobs) is not
 * here.
 */
export interface UserAccess {
  db(namespace: string, instanceId?: string): DatabaseAccessor;
  storage(bucket: string): BucketAccessor;
  /** To all subscribers of the channel. Errors: 401, 403 by the rule of broadcasts; 400, 413, 503. */
  broadcast(channel: string, event: string, payload: JsonObject): Promise<void>;
}
