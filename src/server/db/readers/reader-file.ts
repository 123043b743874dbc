import { Database } from "bun:sqlite";
import { BUSY_TIMEOUT_MS, CACHE_KIB, SIZED_ROWS_MAX, STATEMENTS_MAX } from "../limits.ts";
import { StatementCache } from "../reads/statement-cache.ts";
import type { DatabaseFile, ReadResult, Row, Statement } from "../types.ts";
import { COMMIT_TABLE } from "../writer/commit-gate.ts";
import { measureTable } from "../writer/row-counts.ts";
import type { KeptState, ReadCut, SnapshotSource } from "./read-cut.ts";

const ROWS = `SELECT "rows" FROM "_platform_counts" WHERE "name" = ?`;
/** The age from which the estimated size of a table is measured again. */
const SIZE_KEPT_MS = 1_000;

interface Size {
  bytes: number;
  rows: number;
  /** The number of the commit. */
  version: number;
  measuredAt: number;
}

/**
 * A file that another process writes, for quick reads on the event loop. All reads of a request are of one moment: see `ReadCut`.
 * Whatever takes longer, or writes, is for that process: it throws `AnsweredElsewhere`.
 */
export class ReaderFile implements DatabaseFile, SnapshotSource {
  readonly path: string;
  readonly ready = (): undefined => undefined;
  readonly sqlite: Database;
  readonly #cut: ReadCut;
  readonly #statements: StatementCache;
  readonly #begin: Statement;
  readonly #commit: Statement;
  /** Reads the number of the last commit: the first read of a transaction begins its snapshot. */
  readonly #number: Statement<{ number: number }>;
  /** The number of the last commit in the snapshot. */
  #version = 0;
  readonly #sizes = new Map<string, Size>();

  #isClosed = false;

  /** Opens a file that the writer has open, and has migrated. */
  constructor(path: string, cut: ReadCut, { cacheKiB = CACHE_KIB, statementsMax = STATEMENTS_MAX } = {}) {
    this.path = path;
    this.#cut = cut;
    this.sqlite = new Database(path, { readonly: true });
    this.sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    this.sqlite.run("PRAGMA temp_store = MEMORY");
    this.sqlite.run(`PRAGMA cache_size = -${cacheKiB}`);
    this.#statements = new StatementCache(this.sqlite, statementsMax);
    this.#begin = this.#statements.prepare("BEGIN");
    this.#commit = this.#statements.prepare("COMMIT");
    this.#number = this.#statements.prepare(`SELECT "number" FROM "${COMMIT_TABLE}"`);
  }

  begin(): void {
    if (this.#isClosed) this.#cut.spoil();
    this.#begin.run();
    try {
      this.#version = this.#number.get()?.number ?? 0;
    } catch (cause) {
      this.end();
      throw cause;
    }
  }

  end(): void {
    // SQLite may have ended it after a failed read.
    if (!this.#isClosed && this.sqlite.inTransaction) this.#commit.run();
  }

  query<R = Row>(sql: string): Statement<R> {
    this.#cut.read(this);
    return this.#statements.query<R>(sql);
  }

  version(): number {
    return this.#version;
  }

  /** Whether what was kept from this state may be used now: see `ReadCut`. */
  keeps(state: KeptState): boolean {
    return this.#cut.keeps(this, state);
  }

  /** Returns the state from which what was just read may be kept; null: it may not. */
  state(): KeptState | null {
    return this.#cut.stateOf(this);
  }

  async write(): Promise<never> {
    return this.#cut.spoil();
  }

  async read(): Promise<unknown[][]> {
    return this.#cut.spoil();
  }

  async readPage<R>(): Promise<ReadResult<R>> {
    return this.#cut.spoil();
  }

  async readElsewhere(): Promise<never> {
    return this.#cut.spoil();
  }

  /** Does nothing: where a file has failed, no process may answer but the one that writes it. */
  assertReadable(): void {}

  rowCount(table: string): number {
    return this.query<{ rows: number }>(ROWS).get(table)?.rows ?? 0;
  }

  tableBytes(table: string): number | null {
    const rows = this.rowCount(table);
    if (rows === 0) return 0;
    if (rows > SIZED_ROWS_MAX) return null;
    const now = performance.now();
    const known = this.#sizes.get(table);
    if (known !== undefined && (known.version === this.#version || now - known.measuredAt < SIZE_KEPT_MS)) {
      // An estimate: records that were added since are as large as the others.
      return Math.round((known.bytes * rows) / known.rows);
    }
    const bytes = measureTable(this.sqlite, table);
    this.#sizes.set(table, { bytes, rows, version: this.#version, measuredAt: now });
    return bytes;
  }

  tableVersion(): number {
    this.#cut.read(this);
    return this.#version;
  }

  startOf(): null {
    return null;
  }

  /** Gives back the memory of the connection: statements and pages. */
  rest(): void {
    if (this.sqlite.inTransaction) return;
    this.#statements.clear();
    this.sqlite.run("PRAGMA shrink_memory");
  }

  /** Closes the file at once: nothing reads it any more. */
  closeNow(): void {
    this.end();
    this.#isClosed = true;
    this.#statements.close();
    this.sqlite.close();
  }

  async close(): Promise<void> {
    this.closeNow();
  }
}
