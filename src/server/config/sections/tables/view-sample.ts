import type { DatabaseSync } from "node:sqlite";
import { AUTOMATIC_FIELDS } from "../../shape/names.ts";
import { isPlainObject, type PlainObject } from "../../shape/report.ts";

/** Column in which the SQL of a view sees the fields of a record of a table without a schema, as JSON. */
export const VIEW_DOCUMENT = "record";

/** Quotes a name for SQL. */
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

interface SampledColumn {
  name: string;
  type: string;
  isUnique: boolean;
  isNullable: boolean;
  value: string | number;
}

/** Creates a table with the declared columns, and fills it with records that meet in every join that its indexes allow. */
export function createSample(database: DatabaseSync, table: string, { schema, indexes }: PlainObject): void {
  const columns = [...sampledColumns(schema)];
  const defined = columns.map(({ name, type, isUnique }) => `${quote(name)} ${type}${isUnique ? " UNIQUE" : ""}`);
  database.exec(`CREATE TABLE ${quote(table)} (${defined.join(", ")}) STRICT`);
  for (const index of Array.isArray(indexes) ? indexes : []) {
    if (!isPlainObject(index) || index["unique"] !== true || !Array.isArray(index["fields"])) continue;
    database.exec(
      `CREATE UNIQUE INDEX ${quote(`${table} ${index["fields"].join()}`)} ON ${quote(table)} (${index["fields"].map((name) => quote(String(name))).join(", ")})`,
    );
  }
  const insert = database.prepare(
    `INSERT OR IGNORE INTO ${quote(table)} VALUES (${columns.map(() => "?").join(", ")})`,
  );
  for (const number of [1, 2, 3]) {
    insert.run(
      ...columns.map(({ isUnique, type, value }) => (isUnique ? (type === "TEXT" ? `${number}` : number) : value)),
    );
  }
  // One with null wherever a record may have it.
  insert.run(
    ...columns.map(({ isUnique, isNullable, type, value }) =>
      isNullable ? null : isUnique ? (type === "TEXT" ? "4" : 4) : value,
    ),
  );
}

/** SQLite types of the columns of fields; of all others TEXT. */
export const COLUMN_TYPES: Readonly<Record<string, string>> = {
  number: "REAL",
  integer: "INTEGER",
  boolean: "INTEGER",
};
const INSTANT = "2024-05-06T04:00:00.000Z";

function* sampledColumns(schema: unknown): Generator<SampledColumn> {
  const text = { type: "TEXT", isUnique: false, isNullable: false };
  yield { ...text, name: "id", isUnique: true, value: "" };
  if (!isPlainObject(schema)) yield { ...text, name: VIEW_DOCUMENT, value: "{}" };
  else
    for (const [name, field] of Object.entries(schema)) {
      if (!isPlainObject(field) || AUTOMATIC_FIELDS.includes(name)) continue;
      const type = String(field["type"] ?? "string");
      yield {
        name,
        type: COLUMN_TYPES[type] ?? "TEXT",
        isUnique: field["unique"] === true,
        isNullable: field["required"] !== true && type !== "references" && field["many"] === undefined,
        value: sampledValue(type, field),
      };
    }
  for (const name of ["createdAt", "updatedAt"]) {
    if (!isPlainObject(schema) || schema[name] !== false) yield { ...text, name, value: INSTANT };
  }
}

function sampledValue(type: string, field: PlainObject): string | number {
  const choices = field["enum"];
  if (Array.isArray(choices) && (typeof choices[0] === "string" || typeof choices[0] === "number")) return choices[0];
  switch (type) {
    case "number":
    case "integer":
    case "boolean":
      return 1;
    case "datetime":
      return INSTANT;
    case "date":
      return INSTANT.slice(0, 10);
    case "geo":
      return '{"lat":1,"lng":1}';
    case "json":
    case "references":
      return '["1","2"]';
    case "file":
      return field["many"] === undefined ? "{}" : "[]";
    default:
      // An id of another table's records.
      return "1";
  }
}
