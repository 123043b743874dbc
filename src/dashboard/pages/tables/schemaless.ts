import { declaredAs, type Field, type FieldType, type TableSchema } from "../../api/resources.ts";
import { FOUND_FIELDS_MAX } from "./limits.ts";
import type { Row } from "./rows.ts";

const TEXT_CHARACTERS = 80;

/** The type that all of these values have, as far as editors are concerned; `json` where they differ. */
function typeOf(values: readonly unknown[]): FieldType {
  const isAll = (type: string): boolean => values.length > 0 && values.every((value) => typeof value === type);
  if (isAll("number")) return "number";
  if (isAll("boolean")) return "boolean";
  if (!isAll("string")) return "json";
  return values.some((value) => String(value).length > TEXT_CHARACTERS || String(value).includes("\n"))
    ? "text"
    : "string";
}

/** The schema with the fields that these records have, for a table without one. */
export function withFoundFields(schema: TableSchema, rows: readonly Row[]): TableSchema {
  if (!schema.schemaless) return schema;
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  names.delete("highlights");
  const found = [...names].filter((name) => declaredAs(schema.fields, name) === undefined).slice(0, FOUND_FIELDS_MAX);
  const { id, ...others } = schema.fields;
  const fieldOf = (name: string): Field => {
    const values = rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
    return { type: typeOf(values), required: false, unique: false, generated: false };
  };
  return {
    ...schema,
    fields: {
      ...(id === undefined ? {} : { id }),
      ...Object.fromEntries(found.map((name) => [name, fieldOf(name)])),
      ...others,
    },
  };
}
