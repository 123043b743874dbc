import type { Database } from "bun:sqlite";
import type { Millis } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { AUDIT_ROW_CHARACTERS } from "../limits.ts";
import { isMissingTable } from "../missing-table.ts";
import type { StatementCache } from "../reads/statement-cache.ts";
import type { Commits } from "../writer/commit-gate.ts";
import type { AuditKind, AuditRow, AuditSink, AuditSource, AuditText } from "./types.ts";

/** The table of a file's entries. The first entry creates it. */
export const AUDIT_TABLE = "_platform_audit";
const CREATE = `CREATE TABLE IF NOT EXISTS "${AUDIT_TABLE}" ("seq" INTEGER PRIMARY KEY, "id" TEXT NOT NULL, "kind" TEXT NOT NULL,
  "at" INTEGER NOT NULL, "entries" TEXT NOT NULL) STRICT`;
const INSERT = `INSERT INTO "${AUDIT_TABLE}" ("seq", "id", "kind", "at", "entries") VALUES (?, ?, ?, ?, ?)`;
const DELETE = `DELETE FROM "${AUDIT_TABLE}" WHERE "seq" <= ?`;
const EXISTS = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '${AUDIT_TABLE}'`;
const LAST = `SELECT max("seq") AS "seq" FROM "${AUDIT_TABLE}"`;
const SIZES = `SELECT "seq", octet_length("entries") AS "bytes" FROM "${AUDIT_TABLE}" WHERE "seq" > ? AND "seq" <= ? ORDER BY "seq" LIMIT 100`;
const ROWS = `SELECT * FROM "${AUDIT_TABLE}" WHERE "seq" > ? AND "seq" <= ? ORDER BY "seq"`;

/** Digits of a row's number in an id: as many as the largest number has. */
const SEQ_DIGITS = 15;

/** Reports whether a file has entries that the log may not have. */
export function hasAuditRows(sqlite: Database): boolean {
  return lastSeq(sqlite) !== null;
}

/** Reads the entries of a file, to inspect a data directory without a server. */
export function auditRowsOf(sqlite: Database): AuditRow[] {
  using table = sqlite.prepare(EXISTS);
  if (table.get() === null) return [];
  using rows = sqlite.prepare<AuditRow, [number, number]>(ROWS);
  return rows.all(0, Number.MAX_SAFE_INTEGER);
}

/** Returns the number of the last row; null: there is none. */
function lastSeq(sqlite: Database): number | null {
  using table = sqlite.prepare(EXISTS);
  if (table.get() === null) return null;
  using last = sqlite.prepare<{ seq: number | null }, []>(LAST);
  return last.get()?.seq ?? null;
}

/**
 * Outbox of a file's audit entries. They are written in the transaction of their change and passed to the log once that is on disk.
 * Rows that the log has are deleted by the next transaction with entries, or when the file is closed, so that deletion costs no
 * transaction of its own; the log dedupes rows by their ids. [AL2]
 */
export class FileAudit implements AuditSource {
  readonly #sqlite: Database;
  readonly #statements: StatementCache;
  readonly #sink: AuditSink;
  readonly #commits: Commits;
  /** Prefix of the ids of one opening. They are ordered, which keeps the log's index of them small to write. */
  readonly #prefix: string;
  /** Number of the last row. Numbers are never reused while the file is open: `#taken` is compared with them. */
  #lastSeq: number;
  /** Up to these numbers, rows are on disk (`#durable`), in the log (`#taken`) and deleted (`#deleted`). */
  #durable: number;
  #taken = 0;
  #deleted = 0;
  #isClosed = false;

  constructor(
    sqlite: Database,
    statements: StatementCache,
    { sink, ids, commits }: { sink: AuditSink; ids: Ids; commits: Commits },
  ) {
    this.#commits = commits;
    this.#sqlite = sqlite;
    this.#statements = statements;
    this.#sink = sink;
    this.#prefix = ids.uuid();
    this.#lastSeq = lastSeq(sqlite) ?? 0;
    this.#durable = this.#lastSeq;
    if (this.isWaiting) sink.onWaiting(this);
  }

  /** Whether rows that are on disk are missing in the log. */
  get isWaiting(): boolean {
    return this.#durable > this.#taken;
  }

  /** Inserts entries inside the transaction of the changes. Returns the number of the last row, for `settled`. */
  insert(entries: readonly AuditText[], now: Millis): number {
    for (const kind of ["change", "session"] as const) {
      let some: string[] = [];
      let characters = 0;
      for (const entry of entries) {
        if (entry.kind !== kind) continue;
        if (some.length > 0 && characters + entry.text.length > AUDIT_ROW_CHARACTERS) {
          this.#insertRow(kind, now, some);
          some = [];
          characters = 0;
        }
        some.push(entry.text);
        characters += entry.text.length;
      }
      if (some.length > 0) this.#insertRow(kind, now, some);
    }
    return this.#lastSeq;
  }

  #insertRow(kind: AuditKind, now: Millis, entries: readonly string[]): void {
    const values = [
      this.#lastSeq + 1,
      `${this.#prefix}.${String(this.#lastSeq + 1).padStart(SEQ_DIGITS, "0")}`,
      kind,
      now,
      `[${entries.join(",")}]`,
    ] as const;
    try {
      this.#statements.query(INSERT).run(...values);
    } catch (error) {
      if (!isMissingTable(error)) throw error;
      this.#sqlite.run(CREATE);
      this.#statements.query(INSERT).run(...values);
    }
    this.#lastSeq += 1;
    if (this.#taken > this.#deleted) {
      this.#statements.query(DELETE).run(this.#taken);
      this.#deleted = this.#taken;
    }
  }

  /** Notes that the transaction with this row is on disk. */
  settled(seq: number): void {
    this.#durable = Math.max(this.#durable, seq);
    if (this.isWaiting) this.#sink.onWaiting(this);
  }

  unread(bytesMax: number): AuditRow[] {
    if (this.#isClosed || !this.isWaiting) return [];
    const range = [this.#taken, this.#durable] as const;
    const sizes = this.#statements.query<{ seq: number; bytes: number }>(SIZES).all(...range);
    let bytes = 0;
    let last = 0;
    for (const row of sizes) {
      bytes += row.bytes;
      if (last > 0 && bytes > bytesMax) break;
      last = row.seq;
    }
    if (last > 0) return this.#statements.query<AuditRow>(ROWS).all(this.#taken, last);
    // The transaction with these rows was rolled back after all.
    this.#taken = this.#durable;
    return [];
  }

  taken(throughSeq: number): void {
    this.#taken = Math.max(this.#taken, throughSeq);
  }

  /** Resolves when the log has all rows that are on disk. Errors: 503 while it cannot take them. */
  async requireTaken(): Promise<void> {
    if (this.isWaiting) await this.#sink.flush();
    if (!this.isWaiting) return;
    const reason = "The audit log cannot be written, and this has entries that wait for it: try again later";
    throw new AppError(503, reason);
  }

  close(): void {
    this.#isClosed = true;
    this.#sink.onClosed(this);
  }

  /**
   * Deletes rows that the log has, before the file is closed: the next start visits the files that have rows. Not in `close`, after
   * which nothing may commit. Call outside of transactions.
   */
  forgetTaken(): void {
    if (this.#taken <= this.#deleted) return;
    try {
      const taken = this.#taken;
      this.#commits.transaction(() => this.#sqlite.run(DELETE, [taken]));
      this.#deleted = taken;
    } catch {
      // The log knows these rows when the file is opened again.
    }
  }
}
