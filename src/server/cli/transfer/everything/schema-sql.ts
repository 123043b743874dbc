import { declareTable, type TableModel } from "../../../areas/tables/model/model.ts";
import { VIEW_DOCUMENT } from "../../../config/sections/tables/view-sample.ts";
import { quoteText } from "../../../db/identifiers.ts";
import { type DeclaredColumn, type DeclaredTable, quoteIdentifier as quote } from "../../../db/index.ts";
import { createTableSql, indexesSql } from "../../../db/schema/sql.ts";

/** A namespace with its tables and views, as the schema of an export describes it. */
export interface ExportedNamespace {
  name: string;
  isDynamic: boolean;
  models: readonly TableModel[];
}

/** Returns the declaration of a table without what only this server reads: the columns of accounts, and the form of documents. */
function plainTable(model: TableModel): DeclaredTable {
  const table = declareTable(model);
  const names = new Set(model.columns.map(({ name }) => name));
  const columns = table.columns.filter(({ name }) => names.has(name));
  if (!model.isSchemaless) return { ...table, columns };
  const plain = columns.map((column) => (isOwn(column.name) ? column : { ...column, name: VIEW_DOCUMENT }));
  return { ...table, columns: plain, columnKinds: { ...table.columnKinds, [VIEW_DOCUMENT]: "json" } };
}

const isOwn = (name: string): boolean => ["id", "createdAt", "updatedAt"].includes(name);

const tablesOf = ({ models }: ExportedNamespace): DeclaredTable[] =>
  models.filter(({ view }) => view === null).map(plainTable);

const viewsOf = ({ models }: ExportedNamespace): { name: string; sql: string }[] =>
  models.flatMap(({ name, config }) => (config.view === undefined ? [] : [{ name, sql: config.view.sql }]));

/** Returns the schema in SQLite's dialect: a database for each namespace, which this script makes beside itself. */
export function sqliteSchema(namespaces: readonly ExportedNamespace[]): string {
  const parts = namespaces.map((namespace) => {
    const schema = quote(namespace.name);
    const place = (sql: string, kind: string): string => sql.replace(`CREATE ${kind} `, `CREATE ${kind} ${schema}.`);
    const statements = tablesOf(namespace).flatMap((table) => [
      place(createTableSql(table), "TABLE"),
      ...[...indexesSql(table).values()].map((sql) => place(place(sql, "UNIQUE INDEX"), "INDEX")),
    ]);
    const views = viewsOf(namespace).map(({ name, sql }) => `CREATE VIEW ${schema}.${quote(name)} AS\n${sql}\n`);
    const attach = `ATTACH DATABASE ${quoteText(`${namespace.name}.db`)} AS ${schema}`;
    return [attach, ...statements, ...views, `DETACH DATABASE ${schema}`].map((sql) => `${sql};\n`).join("");
  });
  const head =
    "-- Tables by namespace, each a database of its own. Run in an empty folder: sqlite3 :memory: < this file\n";
  return [head, ...parts].join("\n");
}

const POSTGRES_TYPES: Readonly<Record<string, string>> = {
  string: "text",
  text: "text",
  number: "double precision",
  integer: "bigint",
  boolean: "boolean",
  datetime: "timestamptz",
  date: "date",
  json: "jsonb",
  geo: "jsonb",
  references: "text[]",
};

/** Returns the schema in PostgreSQL's dialect, a schema for each namespace. Comments have the statements that fill the tables. */
export function postgresSchema(namespaces: readonly ExportedNamespace[]): string {
  const head = [
    "-- Tables by namespace, each a schema. A table is filled by the statement above it, from a table of JSON texts:",
    "--   CREATE TEMPORARY TABLE lines (line jsonb);",
    "--   COPY lines FROM 'shared/T.ndjson' WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02');",
    "-- All in one transaction: references are checked at its end.",
  ];
  const parts = namespaces.map((namespace) => {
    const schema = quote(namespace.name);
    const tables = tablesOf(namespace).map((table) => postgresTable(schema, table));
    const references = tablesOf(namespace).flatMap((table) => postgresReferences(schema, table));
    const views = viewsOf(namespace).map(({ name, sql }) =>
      [`View ${name}, in SQLite's dialect:`, ...sql.split(/\r\n|[\n\r]/)].map((line) => `-- ${line}\n`).join(""),
    );
    const note = namespace.isDynamic
      ? [`-- The tables of each instance of ${namespace.name.replace(/\s/g, " ")}: a schema for each.\n`]
      : [];
    return [...note, `CREATE SCHEMA ${schema};\n`, ...tables, ...references, ...views].join("");
  });
  return [`${head.join("\n")}\n`, ...parts].join("\n");
}

function postgresTable(schema: string, table: DeclaredTable): string {
  const place = `${schema}.${quote(table.name)}`;
  const columns = table.columns.map((column) => `  ${postgresColumn(table, column)}`);
  const unique = table.columns.filter((one) => one.unique && one.name !== "id").map(({ name }) => [name]);
  const indexes = [...unique.map((fields) => ({ fields, unique: true })), ...table.indexes].map(
    ({ fields, unique: isUnique }) =>
      `CREATE ${isUnique ? "UNIQUE " : ""}INDEX ON ${place} (${fields.map(quote).join(", ")});\n`,
  );
  const checks = table.columns.flatMap(({ name, check }) =>
    check === null ? [] : [`-- ${name}, in SQLite's dialect: CHECK (${check.replace(/\s+/g, " ")})\n`],
  );
  return [
    `\n-- ${fillStatement(place, table)}\n`,
    ...checks,
    `CREATE TABLE ${place} (\n${columns.join(",\n")}\n);\n`,
    ...indexes,
  ].join("");
}

/** Returns the statement that fills a table from `lines`. Members of JSON have the names of the columns. */
function fillStatement(place: string, table: DeclaredTable): string {
  if (table.kind !== "schemaless") {
    return `INSERT INTO ${place} SELECT r.* FROM lines, jsonb_populate_record(NULL::${place}, line) AS r;`;
  }
  const values = table.columns.map(({ name }) => {
    if (name === "id") return "line->>'id'";
    return isOwn(name) ? `(line->>${quoteText(name)})::timestamptz` : "line - 'id' - 'createdAt' - 'updatedAt'";
  });
  return `INSERT INTO ${place} SELECT ${values.join(", ")} FROM lines;`;
}

function postgresColumn(table: DeclaredTable, { name, notNull, values, default: fallback }: DeclaredColumn): string {
  const type = POSTGRES_TYPES[table.columnKinds[name] ?? "text"] ?? "text";
  const parts = [quote(name), type];
  if (name === "id") parts.push("PRIMARY KEY");
  else if (notNull) parts.push("NOT NULL");
  if (fallback !== undefined && fallback !== null && type !== "text[]")
    parts.push(`DEFAULT ${postgresValue(type, fallback)}`);
  const { enum: choices, minimum, maximum } = values?.schema ?? {};
  const literals = choices?.map((one) => postgresValue(type, one)).join(", ");
  if (literals !== undefined) parts.push(`CHECK (${quote(name)} IN (${literals}))`);
  if (minimum !== undefined) parts.push(`CHECK (${quote(name)} >= ${minimum})`);
  if (maximum !== undefined) parts.push(`CHECK (${quote(name)} <= ${maximum})`);
  return parts.join(" ");
}

function postgresValue(type: string, value: unknown): string {
  if (type === "boolean") return value === 1 || value === true ? "true" : "false";
  if (typeof value === "number") return String(value);
  // A backslash is an ordinary character in PostgreSQL's literals.
  return `${quoteText(String(value))}${type === "text" ? "" : `::${type}`}`;
}

/** References are added when all tables are there, and checked at the end of a transaction: they may form cycles. */
const postgresReferences = (schema: string, table: DeclaredTable): string[] =>
  table.columns.flatMap(({ name, references }) => {
    if (references === null) return [];
    const target = `${schema}.${quote(references.table)} (${quote(references.column)})`;
    const key = `FOREIGN KEY (${quote(name)}) REFERENCES ${target} ON DELETE ${references.onDelete}`;
    return [`ALTER TABLE ${schema}.${quote(table.name)} ADD ${key} DEFERRABLE INITIALLY DEFERRED;\n`];
  });
