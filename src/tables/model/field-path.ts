import type { TableRecord } from "../../config/types.ts";
import type { JsonValue } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { PATH_LENGTH_MAX } from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";

/** A field as filters and sorts name it: a column, or a place inside a JSON column. */
export interface FieldPath {
  /** As it was asked for. */
  name: string;
  column: Column;
  /** Whether values carry their own type (JSON columns and the fields of schemaless tables). */
  isJson: boolean;
  /** SQLite's path into the column, e.g. `$."address"."city"`; `$` for the whole. */
  jsonPath: string;
  /** Where the value is in a record. */
  keys: readonly string[];
}

/** null for what is not declared. Nothing of `name` becomes SQL: columns are the schema's, a path is a bound value. */
export function resolveField(model: TableModel, name: string): FieldPath | null {
  if (name.length > PATH_LENGTH_MAX) return null;
  const keys = name.split(".");
  const [first = ""] = keys;
  const column = model.byName.get(first);
  const isDocument = model.isSchemaless && (column === undefined || column.name === DOCUMENT_COLUMN);
  if (isDocument) {
    const document = model.byName.get(DOCUMENT_COLUMN);
    if (document === undefined || first === DOCUMENT_COLUMN || !keys.every(isKey)) return null;
    return { name, column: document, isJson: true, jsonPath: jsonPathOf(keys), keys };
  }
  if (column === undefined) return null;
  if (column.type === "json") {
    const inner = keys.slice(1);
    return inner.every(isKey) ? { name, column, isJson: true, jsonPath: jsonPathOf(inner), keys } : null;
  }
  return keys.length === 1 ? { name, column, isJson: false, jsonPath: "$", keys } : null;
}

/** SQLite's paths cannot escape a quote. */
const isKey = (key: string): boolean => key !== "" && !/["\\\p{Cc}]/u.test(key) && key.isWellFormed();

const jsonPathOf = (keys: readonly string[]): string => ["$", ...keys.map((key) => `"${key}"`)].join(".");

/** The value in a record; undefined where an absent key ends the path. */
export function valueAt(record: TableRecord, field: FieldPath): JsonValue | undefined {
  let value: JsonValue | undefined = record;
  for (const key of field.keys) {
    // Own keys only: "constructor" of a plain object is no data.
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}
