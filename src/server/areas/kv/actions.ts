import { type Static, Type } from "typebox";
import { badField } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { optional } from "../../../kernel/schema/types.ts";
import { CURSOR_LENGTH_MAX, KEY_LENGTH_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, TTL_MAX_SECONDS } from "./limits.ts";

const Key = Type.String({ minLength: 1, maxLength: KEY_LENGTH_MAX });
const Seconds = Type.Integer({ minimum: 1, maximum: TTL_MAX_SECONDS, description: "Seconds" });
const Limit = Type.Integer({
  minimum: 1,
  default: LIST_LIMIT_DEFAULT,
  description: `More counts as ${LIST_LIMIT_MAX}`,
});

export const Action = Type.Union([
  Type.Object({ action: Type.Literal("get"), key: Key }),
  Type.Object({
    action: Type.Literal("set"),
    key: Key,
    value: Type.Unsafe<JsonValue>({ description: "Any JSON value up to 1 MiB" }),
    ttl: optional(Seconds),
  }),
  Type.Object({ action: Type.Literal("delete"), key: Key }),
  Type.Object({
    action: Type.Literal("list"),
    prefix: optional(Type.String({ maxLength: KEY_LENGTH_MAX })),
    limit: optional(Limit),
    cursor: optional(Type.String({ maxLength: CURSOR_LENGTH_MAX })),
  }),
]);
/** Action of a request, or of a call of `app.kv(name)`. */
export type Action = Static<typeof Action>;

export const encodeCursor = (key: string): string => Buffer.from(key, "utf8").toString("base64url");

/** Decodes a cursor to its key. Errors: 400 for a text that `encodeCursor` did not make. */
export function decodeCursor(cursor: string): string {
  const key = Buffer.from(cursor, "base64url").toString("utf8");
  if (key !== "" && encodeCursor(key) === cursor) return key;
  throw badField("cursor", "invalid_value", "cursor must be one that a list has returned");
}
