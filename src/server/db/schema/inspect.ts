import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { readMeta } from "../meta.ts";
import { isOwnIndex } from "./sql.ts";
import type { DeclaredTable } from "./types.ts";

/** The declaration to which the file was last migrated. It has what SQLite does not store (logical types, checks). */
export type StoredTable = Omit<DeclaredTable, "migrations">;

export interface ActualColumn {
  name: string;
  type: string;
  notNull: boolean;
}

export const DECLARED_KEY = "declared";

/** Reads the stored declaration, by table name; empty for a file that was never migrated. */
export function readStored(sqlite: Database): Map<string, StoredTable> {
  const text = readMeta(sqlite, DECLARED_KEY);
  // Written by the server, in the transaction of the changes that it describes.
  const tables = text === null ? [] : (JSON.parse(text) as StoredTable[]);
  return new Map(tables.map((table) => [table.name, table]));
}

/** Returns every table with its definition, except full-text indexes and tables of SQLite or the server. */
export function readTableSql(sqlite: Database): Map<string, string> {
  const rows = sqlite
    .query<{ name: string; sql: string }, []>(
      `SELECT l.name, m.sql FROM pragma_table_list AS l JOIN sqlite_master AS m ON m.name = l.name AND m.type = 'table'
       WHERE l.schema = 'main' AND l.type = 'table'`,
    )
    .all();
  const own = rows.filter(({ name }) => !/^(sqlite_|_platform_)/i.test(name));
  return new Map(own.map(({ name, sql }) => [name, sql]));
}

export function readColumns(sqlite: Database, table: string): ActualColumn[] {
  const rows = sqlite
    .query<{ name: string; type: string; notnull: number }, [string]>(
      'SELECT name, type, "notnull" FROM pragma_table_info(?)',
    )
    .all(table);
  return rows.map(({ name, type, notnull }) => ({ name, type, notNull: notnull === 1 }));
}

export function readIndexNames(sqlite: Database, table?: string): string[] {
  const rows = sqlite
    .query<{ name: string }, [string | null]>(
      "SELECT name FROM sqlite_master WHERE type = 'index' AND (?1 IS NULL OR tbl_name = ?1)",
    )
    .all(table ?? null);
  return rows.map(({ name }) => name).filter(isOwnIndex);
}

export function countWhere(sqlite: Database, table: string, condition = "1"): number {
  const row = sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${quote(table)} WHERE ${condition}`).get();
  return row?.n ?? 0;
}

/** Reports whether a column has no value in any row. `kind`: that of its field; several references are `[]` where there are none. */
export function hasNoValue(
  sqlite: Database,
  table: string,
  { column, kind }: { column: string; kind?: string | undefined },
) {
  const empty = kind === "references" ? `COALESCE(${quote(column)}, '[]') = '[]'` : `${quote(column)} IS NULL`;
  return sqlite.query(`SELECT 1 FROM ${quote(table)} WHERE NOT (${empty}) LIMIT 1`).get() === null;
}

export function isEmpty(sqlite: Database, table: string): boolean {
  return sqlite.query(`SELECT 1 FROM ${quote(table)} LIMIT 1`).get() === null;
}

/**
 * Counts the combinations of these values (SQL that is not a number by itself) that occur more than once. Rows with a null in them
 * never count.
 */
export function countDuplicates(sqlite: Database, table: string, values: readonly string[]): number {
  const filled = values.map((value) => `${value} IS NOT NULL`).join(" AND ");
  const row = sqlite
    .query<{ n: number }, []>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM ${quote(table)} WHERE ${filled} GROUP BY ${values.join(", ")} HAVING count(*) > 1)`,
    )
    .get();
  return row?.n ?? 0;
}
