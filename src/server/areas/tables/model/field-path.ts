import type { ValuePath } from "../../../../kernel/records/value-path.ts";
import { PATH_LENGTH_MAX } from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";

/** A field of a filter or sort: a column, or a path into a JSON column. */
export interface FieldPath extends ValuePath {
  /** Name in the request. */
  name: string;
  column: Column;
  /** Whether each value has a type of its own, as in JSON columns and schemaless tables. */
  isJson: boolean;
  /** SQLite's path into the column, such as `$."address"."city"`; `$` for the whole value. */
  jsonPath: string;
}

/**
 * Resolves the name of a field; null for an unknown one. No part of `name` becomes SQL: columns come from the schema, and a path
 * is a bound value.
 */
export function resolveField(model: TableModel, name: string): FieldPath | null {
  const own = model.byName.get(name);
  if (own !== undefined && own.type !== "json") {
    return { name, column: own, isJson: false, jsonPath: "$", keys: [name] };
  }
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
  if (column?.type !== "json") return null;
  const inner = keys.slice(1);
  return inner.every(isKey) ? { name, column, isJson: true, jsonPath: jsonPathOf(inner), keys } : null;
}

/** Whether the key can be part of a path: SQLite has no escape for quotes in paths. */
const isKey = (key: string): boolean => key !== "" && !/["\\\p{Cc}]/u.test(key) && key.isWellFormed();

const jsonPathOf = (keys: readonly string[]): string => ["$", ...keys.map((key) => `"${key}"`)].join(".");
