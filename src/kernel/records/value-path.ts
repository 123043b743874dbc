import { isJsonObject, type JsonObject, type JsonValue } from "../json/json.ts";

/** Path of a value in a record, for filters and sorts. */
export interface ValuePath {
  /** The field, then names inside its JSON: `address.city` has two keys. */
  readonly keys: readonly string[];
}

/** Returns the value in a record; undefined where a key of the path is missing. */
export function valueAt(record: JsonObject, { keys }: ValuePath): JsonValue | undefined {
  let value: JsonValue | undefined = record;
  for (const key of keys) {
    // Own keys only: objects inherit `constructor`.
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}
