import type { DeclaredColumn, DeclaredFts, DeclaredTable } from "./declared-types.ts";
import { quoteIdentifier as quote, quoteText } from "./identifiers.ts";
import type { SqlValue } from "./types.ts";

/** Words of two and three letters are prefixes that people search by. */
const FTS_PREFIXES = "2 3";

export function columnSql(column: DeclaredColumn): string {
  const parts = [quote(column.name), column.type];
  if (column.name === "id") parts.push("PRIMARY KEY");
  if (column.notNull) parts.push("NOT NULL");
  if (column.check !== null) parts.push(`CHECK (${column.check})`);
  if (column.references !== null) {
    const { table, column: target, onDelete } = column.references;
    parts.push(`REFERENCES ${quote(table)} (${quote(target)}) ON DELETE ${onDelete}`);
  }
  return parts.join(" ");
}

export function createTableSql(table: DeclaredTable, name: string = table.name): string {
  return `CREATE TABLE ${quote(name)} (${table.columns.map(columnSql).join(", ")}) STRICT`;
}

/** A required column needs a value for the rows that exist: its default, which stays in the definition. */
export function addColumnSql(table: string, column: DeclaredColumn): string {
  const filling = column.default === undefined || !column.notNull ? "" : ` DEFAULT ${literal(column.default)}`;
  return `ALTER TABLE ${quote(table)} ADD COLUMN ${columnSql(column)}${filling}`;
}

export const indexName = (table: string, columns: readonly string[], { isUnique }: { isUnique: boolean }): string =>
  `${isUnique ? "ux" : "ix"}:${table}:${columns.join(",")}`;

/** SQLite's own name for the index of `id`; it follows the table when that is renamed. */
export const primaryKeyIndexName = (table: string): string => `sqlite_autoindex_${table}_1`;

/** Every index by its name, which says all about it: what is declared and what is there compare by name. */
export function indexesSql(table: DeclaredTable): Map<string, string> {
  const indexes = new Map<string, string>();
  const add = (fields: readonly string[], unique: boolean) => {
    const name = indexName(table.name, fields, { isUnique: unique });
    const columns = fields.map(quote).join(", ");
    indexes.set(name, `CREATE ${unique ? "UNIQUE " : ""}INDEX ${quote(name)} ON ${quote(table.name)} (${columns})`);
  };
  for (const column of table.columns) if (column.unique && column.name !== "id") add([column.name], true);
  for (const index of table.indexes) add(index.fields, index.unique);
  return indexes;
}

export function isOwnIndex(name: string): boolean {
  return name.startsWith("ix:") || name.startsWith("ux:");
}

export const ftsName = (table: string): string => `${table}_fts`;

export const ftsTriggerNames = (table: string): string[] =>
  ["insert", "delete", "update"].map((event) => `${ftsName(table)}:${event}`);

export function createFtsSql(table: string, fts: DeclaredFts): string {
  const options = [
    `content=${quoteText(table)}`,
    `content_rowid='rowid'`,
    `tokenize=${quoteText(ftsTokenizer(fts.tokenize))}`,
  ];
  if (fts.tokenize !== "trigram") options.push(`prefix='${FTS_PREFIXES}'`);
  return `CREATE VIRTUAL TABLE ${quote(ftsName(table))} USING fts5(${[...fts.fields.map(quote), ...options].join(", ")})`;
}

/** As FTS5 calls it. */
export const ftsTokenizer = (tokenize: DeclaredFts["tokenize"]): string =>
  tokenize === "porter" ? "porter unicode61" : tokenize;

/** Keep the index in step with the table, also when a foreign key deletes. */
export function ftsTriggersSql(table: string, fts: DeclaredFts): string[] {
  const index = quote(ftsName(table));
  const [onInsert = "", onDelete = "", onUpdate = ""] = ftsTriggerNames(table).map(quote);
  const columns = fts.fields.map(quote).join(", ");
  const values = (row: "new" | "old") => fts.fields.map((field) => `${row}.${quote(field)}`).join(", ");
  const remove = `INSERT INTO ${index} (${index}, rowid, ${columns}) VALUES ('delete', old.rowid, ${values("old")})`;
  const add = `INSERT INTO ${index} (rowid, ${columns}) VALUES (new.rowid, ${values("new")})`;
  const isChanged = fts.fields.map((field) => `old.${quote(field)} IS NOT new.${quote(field)}`).join(" OR ");
  return [
    `CREATE TRIGGER ${onInsert} AFTER INSERT ON ${quote(table)} BEGIN ${add}; END`,
    `CREATE TRIGGER ${onDelete} AFTER DELETE ON ${quote(table)} BEGIN ${remove}; END`,
    `CREATE TRIGGER ${onUpdate} AFTER UPDATE OF ${columns} ON ${quote(table)} WHEN ${isChanged}
     BEGIN ${remove}; ${add}; END`,
  ];
}

export function rebuildFtsSql(table: string): string {
  const index = quote(ftsName(table));
  return `INSERT INTO ${index} (${index}) VALUES ('rebuild')`;
}

/** A value as SQL text: for DDL alone, where nothing can be bound. */
export function literal(value: SqlValue): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return quoteText(value);
  if (typeof value === "boolean") return value ? "1" : "0";
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString("hex")}'`;
  return String(value);
}
