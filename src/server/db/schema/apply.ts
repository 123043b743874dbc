import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { INDEXED_NOW_LENGTH_MAX, REBUILD_NOW_ROWS_MAX } from "../limits.ts";
import { dropEmbeddingTriggers, isEmbeddingTrigger } from "./embeddings.ts";
import { dropGeoTriggers, isGeoTrigger } from "./geo-index.ts";
import { readIndexNames } from "./inspect.ts";
import type { TablePlan } from "./plan.ts";
import {
  addColumnSql,
  createFtsSql,
  createTableSql,
  ftsName,
  ftsTriggerNames,
  ftsTriggersSql,
  indexesSql,
  literal,
  rebuildFtsSql,
} from "./sql.ts";
import type { DeclaredFts, DeclaredTable } from "./types.ts";

export function applyPlan(sqlite: Database, plan: TablePlan): void {
  const { table } = plan;
  for (const column of plan.addColumns) sqlite.run(addColumnSql(table.name, column));
  for (const column of plan.fillColumns) {
    const name = quote(column.name);
    sqlite.run(`UPDATE ${quote(table.name)} SET ${name} = ${literal(column.default ?? null)} WHERE ${name} IS NULL`);
  }
  if (plan.rebuild) rebuildTable(sqlite, table);
}

/**
 * Rebuilds a table by SQLite's documented procedure for changes that ALTER TABLE cannot make. Foreign keys are off during it and
 * are checked at the end. Rowids are kept, because the full-text index refers to records by rowid. Triggers that the server did not
 * create are restored unchanged.
 */
function rebuildTable(sqlite: Database, table: DeclaredTable): void {
  const temporaryName = `_platform_rebuild_${table.name}`;
  const present = new Set(
    sqlite
      .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
      .all(table.name)
      .map(({ name }) => name),
  );
  const own = new Set(ftsTriggerNames(table.name));
  const triggers = sqlite
    .query<{ name: string; sql: string }, [string]>(
      "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?",
    )
    .all(table.name)
    .filter(({ name }) => !own.has(name) && !isGeoTrigger(table.name, name) && !isEmbeddingTrigger(table.name, name));
  const columns = table.columns.filter(({ name }) => present.has(name)).map(({ name }) => quote(name));
  const list = ["rowid", ...columns].join(", ");
  // SQLite refuses to rename a table while a trigger refers to a missing one.
  dropFtsTriggers(sqlite, table.name);
  dropGeoTriggers(sqlite, table.name);
  dropEmbeddingTriggers(sqlite, table.name);
  sqlite.run(createTableSql(table, temporaryName));
  sqlite.run(`INSERT INTO ${quote(temporaryName)} (${list}) SELECT ${list} FROM ${quote(table.name)} ORDER BY rowid`);
  sqlite.run(`DROP TABLE ${quote(table.name)}`);
  sqlite.run(`ALTER TABLE ${quote(temporaryName)} RENAME TO ${quote(table.name)}`);
  for (const { sql } of triggers) sqlite.run(sql);
}

/** Creates missing declared indexes, and drops the server's indexes that are no longer declared. */
export function applyIndexes(sqlite: Database, table: DeclaredTable): void {
  const wanted = indexesSql(table);
  const present = new Set(readIndexNames(sqlite, table.name));
  for (const name of present) if (!wanted.has(name)) sqlite.run(`DROP INDEX ${quote(name)}`);
  for (const [name, sql] of wanted) if (!present.has(name)) sqlite.run(sql);
}

export interface FtsState {
  /** Whether the index may not match the table's rows. */
  isStale: boolean;
  /** Moment at which a large table is reindexed. */
  rebuild: "now" | "later";
}

export function applyFts(sqlite: Database, table: DeclaredTable, { isStale, rebuild }: FtsState): void {
  const before = readFtsSql(sqlite, table.name);
  const wanted = table.fts === null ? null : createFtsSql(table.name, table.fts);
  if (before !== null && before !== wanted) dropFts(sqlite, table.name);
  if (table.fts === null || wanted === null) return;
  const isNew = before !== wanted;
  if (isNew) sqlite.run(wanted);
  dropFtsTriggers(sqlite, table.name);
  for (const sql of ftsTriggersSql(table.name, table.fts)) sqlite.run(sql);
  if (!isNew && !isStale) return;
  const when = rebuild === "later" && holdsMuch(sqlite, table.name, table.fts) ? "later" : "now";
  for (const sql of rebuildFtsSql(table.name, table.fts, when)) sqlite.run(sql);
}

/** Reports whether reindexing takes long. Estimated from the first records, which is cheap. */
function holdsMuch(sqlite: Database, table: string, fts: DeclaredFts): boolean {
  const length = fts.fields.map((field) => `ifnull(length(${quote(field)}), 0)`).join(" + ");
  const statement = sqlite.prepare<{ length: number | null; n: number }, [number]>(
    `SELECT sum(length) AS length, count(*) AS n FROM (SELECT ${length} AS length FROM ${quote(table)} LIMIT ?)`,
  );
  const found = statement.get(REBUILD_NOW_ROWS_MAX);
  statement.finalize();
  return found !== null && (found.n >= REBUILD_NOW_ROWS_MAX || (found.length ?? 0) > INDEXED_NOW_LENGTH_MAX);
}

function readFtsSql(sqlite: Database, table: string): string | null {
  const statement = sqlite.prepare<{ sql: string }, [string]>(
    "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?",
  );
  const sql = statement.get(ftsName(table))?.sql ?? null;
  statement.finalize();
  return sql;
}

export function dropFts(sqlite: Database, table: string): void {
  dropFtsTriggers(sqlite, table);
  sqlite.run(`DROP TABLE IF EXISTS ${quote(ftsName(table))}`);
}

export function dropFtsTriggers(sqlite: Database, table: string): void {
  for (const name of ftsTriggerNames(table)) sqlite.run(`DROP TRIGGER IF EXISTS ${quote(name)}`);
}
