import type { Database } from "bun:sqlite";
import type { StatementCache } from "./statement-cache.ts";
import type { Change } from "./types.ts";

const CREATE = `CREATE TABLE IF NOT EXISTS "_platform_counts" ("name" TEXT PRIMARY KEY NOT NULL, "rows" INTEGER NOT NULL) STRICT, WITHOUT ROWID`;
const ADD = `INSERT INTO "_platform_counts" ("name", "rows") VALUES (?1, ?2)
  ON CONFLICT ("name") DO UPDATE SET "rows" = "rows" + ?2`;

/** Makes the table of row counts and gives `tables` their present count. For migrations: inside their transaction. */
export function countRows(sqlite: Database, tables: readonly string[], quote: (name: string) => string): void {
  sqlite.run(CREATE);
  for (const table of tables) {
    sqlite.run(
      `INSERT INTO "_platform_counts" ("name", "rows") VALUES (?, (SELECT count(*) FROM ${quote(table)}))
       ON CONFLICT ("name") DO UPDATE SET "rows" = excluded."rows"`,
      [table],
    );
  }
}

/** For migrations, after `countRows`: of tables that have been dropped. */
export function forgetCounts(sqlite: Database, tables: readonly string[]): void {
  for (const table of tables) sqlite.run(`DELETE FROM "_platform_counts" WHERE "name" = ?`, [table]);
}

/** The rows of each table as of the last commit, kept in the file by the transactions that change them. */
export class RowCounts {
  readonly #sqlite: Database;
  readonly #statements: StatementCache;
  #rows: Map<string, number> | null = null;
  #isTableThere = false;

  constructor(sqlite: Database, statements: StatementCache) {
    this.#sqlite = sqlite;
    this.#statements = statements;
  }

  get(table: string): number {
    return this.#load().get(table) ?? 0;
  }

  /** Inside the transaction that makes `changes`: what they add up to, written to the file. */
  write(changes: Iterable<readonly Change[]>): Map<string, number> {
    const deltas = sumByTable(changes);
    if (deltas.size === 0) return deltas;
    this.#load();
    if (!this.#isTableThere) this.#sqlite.run(CREATE);
    for (const [table, delta] of deltas) this.#statements.query(ADD).run(table, delta);
    return deltas;
  }

  /** After the commit of what `write` returned. */
  apply(deltas: ReadonlyMap<string, number>): void {
    if (deltas.size === 0) return;
    const rows = this.#load();
    this.#isTableThere = true;
    for (const [table, delta] of deltas) rows.set(table, (rows.get(table) ?? 0) + delta);
  }

  #load(): Map<string, number> {
    if (this.#rows !== null) return this.#rows;
    const rows = new Map<string, number>();
    const known = this.#sqlite.prepare(`SELECT 1 FROM sqlite_master WHERE name = '_platform_counts'`);
    this.#isTableThere = known.get() !== null;
    known.finalize();
    if (this.#isTableThere) {
      const all = this.#sqlite.prepare<{ name: string; rows: number }, []>(
        `SELECT "name", "rows" FROM "_platform_counts"`,
      );
      for (const row of all.all()) rows.set(row.name, row.rows);
      all.finalize();
    }
    this.#rows = rows;
    return rows;
  }
}

function sumByTable(groups: Iterable<readonly Change[]>): Map<string, number> {
  const deltas = new Map<string, number>();
  for (const changes of groups) {
    for (const { table, before, after } of changes) {
      const delta = (after === null ? 0 : 1) - (before === null ? 0 : 1);
      if (delta !== 0) deltas.set(table, (deltas.get(table) ?? 0) + delta);
    }
  }
  for (const [table, delta] of deltas) if (delta === 0) deltas.delete(table);
  return deltas;
}
