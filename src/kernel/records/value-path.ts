import { isJsonObject, type JsonObject, type JsonValue } from "../json/json.ts";

/** Where a filter or sort looks in a record. */
export interface ValuePath {
  /** The field, then names inside its JSON: those of `address.city`. */
  readonly keys: readonly string[];
}

/** The value in a record; undefined where a key of the path is missing. */
export function valueAt(record: JsonObject, { keys }: ValuePath): JsonValue | undefined {
  let value: JsonValue | undefined = record;
  for (const key of keys) {
    // Own keys only: objects inherit `constructor`.
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}
