import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";

export const idOf = (record: JsonObject): string => String(record["id"]);

/** Whether two values have the same JSON, whatever the order of members. */
export function isSame(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((value, index) => isSame(value, right[index]));
  }
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isSame(left[name], right[name]))
  );
}

/** The record with these members only. */
export function pick(record: JsonObject, names: ReadonlySet<string>): JsonObject {
  const picked: JsonObject = {};
  for (const name of Object.keys(record)) if (names.has(name)) picked[name] = record[name] ?? null;
  return picked;
}
