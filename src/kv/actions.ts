import { badField } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import { refuseUnknownMembers } from "../kernel/members.ts";
import { decodeCursor, parseKey } from "./keys.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, TTL_MAX_SECONDS } from "./limits.ts";
import type { KeyQuery, KeyValueAction } from "./types.ts";

/** What each action takes. */
const MEMBERS: ReadonlyMap<JsonValue | undefined, readonly string[]> = new Map([
  ["get", ["action", "key"]],
  ["delete", ["action", "key"]],
  ["set", ["action", "key", "value", "ttl"]],
  ["list", ["action", "prefix", "limit", "cursor"]],
]);

/** Errors: 400 naming the member at fault. Spec: Native resource endpoints; decisions 8. */
export function parseAction(body: JsonObject): KeyValueAction {
  const action = body["action"];
  const members = MEMBERS.get(action);
  if (members !== undefined) refuseUnknownMembers(body, members, `the action ${action}`);
  switch (action) {
    case "get":
    case "delete":
      return { action, key: parseKey(body["key"], "key", 1) };
    case "set": {
      const key = parseKey(body["key"], "key", 1);
      const value = body["value"];
      if (value === undefined) throw badField("value", "required", '"value" is required');
      return { action, key, value, ttlSeconds: parseTtl(body["ttl"]) };
    }
    case "list":
      return { action, query: parseKeyQuery(body) };
    case undefined:
      throw badField("action", "required", '"action" is required: get, set, delete or list');
    default:
      throw badField("action", "invalid_value", '"action" must be get, set, delete or list');
  }
}

/** Absent and null: no time to live. */
export function parseTtl(ttl: JsonValue | undefined): number | null {
  if (ttl === undefined || ttl === null) return null;
  if (typeof ttl !== "number" || !Number.isInteger(ttl)) {
    throw badField("ttl", "invalid_type", '"ttl" must be a whole number of seconds');
  }
  if (ttl < 1) throw badField("ttl", "too_small", `"ttl" must be at least 1 second, got ${ttl}`);
  if (ttl > TTL_MAX_SECONDS) throw badField("ttl", "too_large", `"ttl" must be at most ${TTL_MAX_SECONDS} seconds`);
  return ttl;
}

/** Members that are absent or null take their defaults. */
export function parseKeyQuery(body: { prefix?: JsonValue; limit?: JsonValue; cursor?: JsonValue }): KeyQuery {
  return {
    prefix: parseKey(body.prefix ?? "", "prefix", 0),
    limit: parseLimit(body.limit ?? LIST_LIMIT_DEFAULT),
    after: body.cursor === undefined || body.cursor === null ? null : decodeCursor(body.cursor),
  };
}

function parseLimit(limit: JsonValue): number {
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1) return Math.min(limit, LIST_LIMIT_MAX);
  throw badField("limit", "invalid_value", '"limit" must be a whole number from 1');
}
