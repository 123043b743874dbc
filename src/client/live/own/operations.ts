import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import type { WriteOperation } from "../../tables/local-writes.ts";
import { isSame } from "../records.ts";

/** The record after an operation of this client, as far as the client can tell. null: none. */
export function applyOperation(operation: WriteOperation, record: JsonObject | null, now: string): JsonObject | null {
  switch (operation.type) {
    case "delete":
      return null;
    case "update":
      return record === null ? null : changed(record, operation.changes, now);
    case "insert":
      // The server's own record has what the client cannot know.
      return record ?? { createdAt: now, updatedAt: now, ...operation.record };
    case "upsert":
      return record === null
        ? { createdAt: now, updatedAt: now, ...operation.record }
        : changed(record, { ...operation.record, id: record["id"] ?? null }, now);
  }
}

function changed(record: JsonObject, changes: JsonObject, now: string): JsonObject {
  const next = { ...record };
  if (Object.hasOwn(record, "updatedAt")) next["updatedAt"] = now;
  for (const [name, value] of Object.entries(changes)) next[name] = valueAfter(record[name] ?? null, value);
  return next;
}

const isOperator = (value: JsonValue): value is JsonObject => isJsonObject(value) && typeof value["$op"] === "string";

/** `increment` and `deleteField` are objects with `$op`. */
function valueAfter(before: JsonValue, value: JsonValue): JsonValue {
  if (!isOperator(value)) return value;
  if (value["$op"] === "deleteField") return null;
  return (typeof before === "number" ? before : 0) + Number(value["value"]);
}

/** Whether a state that the server sends looks like the result of the operation: what it sets is as expected. */
export function isEchoOf(operation: WriteOperation, before: JsonObject | null, state: JsonObject | null): boolean {
  if (operation.type === "delete" || state === null) return operation.type === "delete" && state === null;
  if (operation.type === "insert") return before === null;
  const set = operation.type === "update" ? operation.changes : operation.record;
  return Object.keys(set).every((name) => {
    const value = set[name] ?? null;
    // What an increment makes of a value that is not known cannot be told.
    return (before === null && isOperator(value)) || isSame(valueAfter(before?.[name] ?? null, value), state[name]);
  });
}
