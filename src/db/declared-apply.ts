import type { Database } from "bun:sqlite";
import { readIndexNames, type StoredTable } from "./declared-inspect.ts";
import type { TablePlan } from "./declared-plan.ts";
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
} from "./declared-sql.ts";
import type { DeclaredTable } from "./declared-types.ts";
import { quoteIdentifier as quote } from "./identifiers.ts";

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
 * SQLite's own procedure for what ALTER TABLE cannot do; foreign keys are off meanwhile, and checked at the end. Rowids
 * stay: the full-text index knows the records by them. Triggers that are not ours come back as they were.
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
    .filter(({ name }) => !own.has(name));
  const columns = table.columns.filter(({ name }) => present.has(name)).map(({ name }) => quote(name));
  const list = ["rowid", ...columns].join(", ");
  sqlite.run(createTableSql(table, temporaryName));
  sqlite.run(`INSERT INTO ${quote(temporaryName)} (${list}) SELECT ${list} FROM ${quote(table.name)} ORDER BY rowid`);
  sqlite.run(`DROP TABLE ${quote(table.name)}`);
  sqlite.run(`ALTER TABLE ${quote(temporaryName)} RENAME TO ${quote(table.name)}`);
  for (const { sql } of triggers) sqlite.run(sql);
}

/** Makes the indexes that are declared and missing, and drops those of ours that are declared no longer. */
export function applyIndexes(sqlite: Database, table: DeclaredTable): void {
  const wanted = indexesSql(table);
  const present = new Set(readIndexNames(sqlite, table.name));
  for (const name of present) if (!wanted.has(name)) sqlite.run(`DROP INDEX ${quote(name)}`);
  for (const [name, sql] of wanted) if (!present.has(name)) sqlite.run(sql);
}

export interface FtsState {
  stored: StoredTable | null;
  /** The table's rows may be others than the index knows of. */
  isStale: boolean;
}

export function applyFts(sqlite: Database, table: DeclaredTable, { stored, isStale }: FtsState): void {
  const before = stored?.fts ?? null;
  const hasChanged = !Bun.deepEquals(before, table.fts);
  if (before !== null && hasChanged) dropFts(sqlite, table.name);
  if (table.fts === null) return;
  const isNew = before === null || hasChanged;
  if (isNew) sqlite.run(createFtsSql(table.name, table.fts));
  if (isNew || isStale) sqlite.run(rebuildFtsSql(table.name));
  dropFtsTriggers(sqlite, table.name);
  for (const sql of ftsTriggersSql(table.name, table.fts)) sqlite.run(sql);
}

export function dropFts(sqlite: Database, table: string): void {
  dropFtsTriggers(sqlite, table);
  sqlite.run(`DROP TABLE IF EXISTS ${quote(ftsName(table))}`);
}

export function dropFtsTriggers(sqlite: Database, table: string): void {
  for (const name of ftsTriggerNames(table)) sqlite.run(`DROP TRIGGER IF EXISTS ${quote(name)}`);
}
