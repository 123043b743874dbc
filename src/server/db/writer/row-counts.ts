import type { Database } from "bun:sqlite";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { quoteIdentifier } from "../identifiers.ts";
import { SIZED_ROWS_MAX } from "../limits.ts";
import type { StatementCache } from "../reads/statement-cache.ts";
import type { Change } from "../types.ts";

const ADD = `INSERT INTO "_platform_counts" ("name", "rows") VALUES (?1, ?2)
  ON CONFLICT ("name") DO UPDATE SET "rows" = "rows" + ?2`;

/** Counts the rows of `tables` and stores the counts. For migrations, inside their transaction. */
export function countRows(sqlite: Database, tables: readonly string[], quote: (name: string) => string): void {
  for (const table of tables) {
    sqlite.run(
      `INSERT INTO "_platform_counts" ("name", "rows") VALUES (?, (SELECT count(*) FROM ${quote(table)}))
       ON CONFLICT ("name") DO UPDATE SET "rows" = excluded."rows"`,
      [table],
    );
  }
}

/** Removes the counts of dropped tables. For migrations, after `countRows`. */
export function forgetCounts(sqlite: Database, tables: readonly string[]): void {
  for (const table of tables) sqlite.run(`DELETE FROM "_platform_counts" WHERE "name" = ?`, [table]);
}

/** Changes of a transaction to the counts: rows by table, and bytes by table whose size is known. */
interface Deltas {
  tables: ReadonlySet<string>;
  rows: ReadonlyMap<string, number>;
  bytes: ReadonlyMap<string, number>;
}

const NO_BYTES: ReadonlyMap<string, number> = new Map();

/**
 * Row counts of each table as of the last commit. They are stored in the file by the transactions that change the rows. The
 * approximate size in bytes of a small table is kept in memory only.
 */
export class RowCounts {
  readonly #sqlite: Database;
  readonly #statements: StatementCache;
  #rows: Map<string, number> | null = null;
  readonly #bytes = new Map<string, number>();
  /** The number of the last commit that changed a table; absent: none since the file was opened. */
  readonly #versions = new Map<string, number>();
  readonly #openedVersion: number;

  /** `version`: the number of the file's last commit. */
  constructor(sqlite: Database, statements: StatementCache, version: number) {
    this.#sqlite = sqlite;
    this.#statements = statements;
    this.#openedVersion = version;
  }

  get(table: string): number {
    return this.#load().get(table) ?? 0;
  }

  /** Returns the number of a commit since which the table has not changed. */
  version(table: string): number {
    return this.#versions.get(table) ?? this.#openedVersion;
  }

  /**
   * Estimates the bytes of a table; 0 without rows; null for more than SIZED_ROWS_MAX. Measured once, then updated by each change.
   * [DB126]
   */
  bytes(table: string): number | null {
    const rows = this.get(table);
    if (rows === 0 || rows > SIZED_ROWS_MAX) {
      this.#bytes.delete(table);
      return rows === 0 ? 0 : null;
    }
    const known = this.#bytes.get(table);
    if (known !== undefined) return known;
    const measured = measureTable(this.#sqlite, table);
    this.#bytes.set(table, measured);
    return measured;
  }

  /** Writes the sum of `changes` to the file and returns it. Call inside the transaction that makes the changes. */
  write(changes: Iterable<readonly Change[]>): Deltas {
    const groups = [...changes];
    const { tables, rows } = sumByTable(groups);
    const bytes = this.#bytes.size === 0 ? NO_BYTES : this.#sumBytes(groups);
    if (rows.size > 0) this.#load();
    for (const [table, delta] of rows) this.#statements.query(ADD).run(table, delta);
    return { tables, rows, bytes };
  }

  /** Updates the counts in memory. Call with the result of `write` after its commit, and with the commit's number. */
  apply({ tables, rows: rowDeltas, bytes }: Deltas, version: number): void {
    for (const table of tables) this.#versions.set(table, version);
    for (const [table, delta] of bytes) {
      this.#bytes.set(table, Math.max(0, (this.#bytes.get(table) ?? 0) + delta));
    }
    if (rowDeltas.size === 0) return;
    const rows = this.#load();
    for (const [table, delta] of rowDeltas) rows.set(table, (rows.get(table) ?? 0) + delta);
  }

  #sumBytes(groups: readonly (readonly Change[])[]): ReadonlyMap<string, number> {
    const deltas = new Map<string, number>();
    for (const changes of groups) {
      for (const { table, before, after } of changes) {
        if (!this.#bytes.has(table)) continue;
        deltas.set(table, (deltas.get(table) ?? 0) + sizeOf(after) - sizeOf(before));
      }
    }
    return deltas;
  }

  #load(): Map<string, number> {
    if (this.#rows !== null) return this.#rows;
    const rows = new Map<string, number>();
    const known = this.#sqlite.prepare(`SELECT 1 FROM sqlite_master WHERE name = '_platform_counts'`);
    const isTableThere = known.get() !== null;
    known.finalize();
    if (isTableThere) {
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

/** Measures a table in a fraction of a millisecond: SQLite stores the length of a text in the row header. */
export function measureTable(sqlite: Database, table: string): number {
  const columns = sqlite.prepare<{ name: string; type: string }, [string]>(
    `SELECT "name", "type" FROM pragma_table_info(?)`,
  );
  const names = columns.all(table).map(({ name, type }) => (/TEXT|BLOB/.test(type) ? quoteIdentifier(name) : null));
  columns.finalize();
  const texts = names.filter((name) => name !== null).map((name) => `ifnull(octet_length(${name}), 0)`);
  const sum = [String(names.length * SCALAR_BYTES), ...texts].join(" + ");
  const sized = sqlite.prepare<{ bytes: number | null }, []>(
    `SELECT sum(${sum}) AS "bytes" FROM ${quoteIdentifier(table)}`,
  );
  const bytes = sized.get()?.bytes ?? 0;
  sized.finalize();
  return bytes;
}

function sumByTable(groups: readonly (readonly Change[])[]): { tables: Set<string>; rows: Map<string, number> } {
  const tables = new Set<string>();
  const rows = new Map<string, number>();
  for (const changes of groups) {
    for (const { table, before, after } of changes) {
      tables.add(table);
      const delta = (after === null ? 0 : 1) - (before === null ? 0 : 1);
      if (delta !== 0) rows.set(table, (rows.get(table) ?? 0) + delta);
    }
  }
  for (const [table, delta] of rows) if (delta === 0) rows.delete(table);
  return { tables, rows };
}

/** Bytes counted for a value that is not a text. */
const SCALAR_BYTES = 8;

function sizeOf(value: JsonValue): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return SCALAR_BYTES;
  let bytes = SCALAR_BYTES;
  // `for … in` converts each index to a text: a quarter of a million numbers would block the event loop for 100 to 400 ms.
  if (Array.isArray(value)) for (const element of value) bytes += sizeOf(element);
  else for (const key in value) bytes += sizeOf(value[key] ?? null);
  return bytes;
}
