import { quoteIdentifier as quote, quoteText } from "../identifiers.ts";
import type { SqlValue } from "../types.ts";
import { PENDING_TEXTS } from "../writer/text-indexer.ts";
import { ftsTokenizer } from "./tokenizer.ts";
import type { DeclaredColumn, DeclaredFts, DeclaredTable } from "./types.ts";

/** Prefix lengths that FTS5 indexes, because people search by prefixes of two and three letters. */
const FTS_PREFIXES = "2 3";

function columnSql(column: DeclaredColumn): string {
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

/**
 * Returns the SQL that adds a column. A required column needs a value for existing rows: its default, which stays in the
 * definition.
 */
export function addColumnSql(table: string, column: DeclaredColumn): string {
  const filling = column.default === undefined || !column.notNull ? "" : ` DEFAULT ${literal(column.default)}`;
  return `ALTER TABLE ${quote(table)} ADD COLUMN ${columnSql(column)}${filling}`;
}

export const indexName = (table: string, columns: readonly string[], { isUnique }: { isUnique: boolean }): string =>
  `${isUnique ? "ux" : "ix"}:${table}:${columns.join(",")}`;

/** Returns SQLite's name for the index of `id`. SQLite changes it when the table is renamed. */
export const primaryKeyIndexName = (table: string): string => `sqlite_autoindex_${table}_1`;

/**
 * Returns the SQL of every index by name. The name describes the whole index, so declared and existing indexes are compared by
 * name.
 */
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
  ["insert", "delete", "update", "pending"].map((event) => `${ftsName(table)}:${event}`);

/**
 * Returns the SQL of a contentless FTS5 table: the texts are in the records only, and a record is removed without reading its
 * texts.
 */
export function createFtsSql(table: string, fts: DeclaredFts): string {
  const options = ["content=''", "contentless_delete=1", `tokenize=${quoteText(ftsTokenizer(fts.tokenize))}`];
  if (fts.tokenize !== "trigram") options.push(`prefix='${FTS_PREFIXES}'`);
  return `CREATE VIRTUAL TABLE ${quote(ftsName(table))} USING fts5(${[...fts.fields.map(quote), ...options].join(", ")})`;
}

/**
 * Returns the SQL that leaves the merge of removed entries to later inserts. Otherwise a write that deletes many records would wait
 * for it.
 */
function configureFtsSql(table: string): string {
  const index = quote(ftsName(table));
  return `INSERT INTO ${index} (${index}, rank) VALUES ('deletemerge', 0)`;
}

/**
 * Returns triggers that update the index with the table, including deletes by foreign keys. A record with a row in
 * `_platform_pending_texts` is not indexed when it is written, but when that row is deleted.
 */
export function ftsTriggersSql(table: string, fts: DeclaredFts): string[] {
  const [name, index, pending] = [quote(table), quote(ftsName(table)), quote(PENDING_TEXTS)];
  const [onInsert = "", onDelete = "", onUpdate = "", onPending = ""] = ftsTriggerNames(table).map(quote);
  const columns = fts.fields.map(quote).join(", ");
  const isNoted = `EXISTS (SELECT 1 FROM ${pending} AS p WHERE p."table" = ${quoteText(table)} AND p."id" = new."id")`;
  const remove = (row: string) => `DELETE FROM ${index} WHERE rowid = ${row}`;
  const add = `INSERT INTO ${index} (rowid, ${columns}) SELECT`;
  const values = fts.fields.map((field) => `new.${quote(field)}`).join(", ");
  const isChanged = fts.fields.map((field) => `old.${quote(field)} IS NOT new.${quote(field)}`).join(" OR ");
  return [
    `CREATE TRIGGER ${onInsert} AFTER INSERT ON ${name} WHEN NOT ${isNoted} BEGIN ${add} new.rowid, ${values}; END`,
    `CREATE TRIGGER ${onDelete} AFTER DELETE ON ${name} BEGIN ${remove("old.rowid")};
     DELETE FROM ${pending} WHERE "table" = ${quoteText(table)} AND "id" = old."id"; END`,
    `CREATE TRIGGER ${onUpdate} AFTER UPDATE OF ${columns} ON ${name} WHEN ${isChanged}
     BEGIN ${remove("old.rowid")}; ${add} new.rowid, ${values} WHERE NOT ${isNoted}; END`,
    `CREATE TRIGGER ${onPending} AFTER DELETE ON ${pending} WHEN old."table" = ${quoteText(table)}
     BEGIN ${remove(`(SELECT rowid FROM ${name} WHERE "id" = old."id")`)};
     ${add} rowid, ${columns} FROM ${name} WHERE "id" = old."id"; END`,
  ];
}

/** Returns the SQL that reindexes every record, at once or later by `_platform_pending_texts`. */
export function rebuildFtsSql(table: string, fts: DeclaredFts, when: "now" | "later"): string[] {
  const [name, index] = [quote(table), quote(ftsName(table))];
  const columns = fts.fields.map(quote).join(", ");
  return [
    `INSERT INTO ${index} (${index}) VALUES ('delete-all')`,
    configureFtsSql(table),
    when === "now"
      ? `INSERT INTO ${index} (rowid, ${columns}) SELECT rowid, ${columns} FROM ${name}`
      : `INSERT OR IGNORE INTO ${quote(PENDING_TEXTS)} ("table", "id") SELECT ${quoteText(table)}, "id" FROM ${name}`,
  ];
}

/** Formats a value as SQL text, only for DDL, which cannot have bound values. */
export function literal(value: SqlValue): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return quoteText(value);
  if (typeof value === "boolean") return value ? "1" : "0";
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString("hex")}'`;
  return String(value);
}
