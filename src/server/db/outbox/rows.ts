import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { hasAuditRows } from "../audit/file-audit.ts";
import { hasWal, openUnchanged } from "../open-unchanged.ts";
import type { StatementCache } from "../reads/statement-cache.ts";
import type { Transaction } from "../types.ts";
import type { OutboxRow, StoredOutboxRow } from "./types.ts";

/** The table of a file's outbox. The first row creates it. */
export const OUTBOX_TABLE = "_platform_outbox";

const CREATE = `CREATE TABLE IF NOT EXISTS "${OUTBOX_TABLE}" ("seq" INTEGER PRIMARY KEY, "id" TEXT NOT NULL,
  "names" TEXT NOT NULL, "group" TEXT, "key" TEXT, "dueAt" INTEGER, "data" TEXT NOT NULL, "secret" BLOB) STRICT`;
/** Migrates a table that an earlier version has made. */
const ADD_SECRET = `ALTER TABLE "${OUTBOX_TABLE}" ADD COLUMN "secret" BLOB`;
const INSERT = `INSERT INTO "${OUTBOX_TABLE}" ("id", "names", "group", "key", "dueAt", "data") VALUES (?, ?, ?, ?, ?, ?)`;
const INSERT_SECRET = `INSERT INTO "${OUTBOX_TABLE}" ("id", "names", "group", "key", "dueAt", "data", "secret")
  VALUES (?, ?, ?, ?, ?, ?, ?)`;
/** Sizes of the first rows, read before their data. */
const SIZES = `SELECT "seq", octet_length("data") AS "bytes" FROM "${OUTBOX_TABLE}" ORDER BY "seq" LIMIT ?`;
const FIRST = `SELECT * FROM "${OUTBOX_TABLE}" WHERE "seq" <= ? ORDER BY "seq"`;
const DELETE = `DELETE FROM "${OUTBOX_TABLE}" WHERE "seq" <=
  (SELECT "seq" FROM "${OUTBOX_TABLE}" WHERE "seq" = ? AND "id" = ?)`;
const EXISTS = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '${OUTBOX_TABLE}'`;

type Row = Omit<StoredOutboxRow, "names" | "secret"> & { names: string; secret?: Uint8Array | null };

/** Inserts a row inside a transaction, which also creates the table for the first row. */
export function insertOutboxRow(sqlite: Database, statements: StatementCache, row: OutboxRow): void {
  const { id, names, group, key, dueAt, data, secret } = row;
  const values = [id, JSON.stringify(names), group, key, dueAt, data] as const;
  const insert = (): void => {
    if (secret === null) statements.query(INSERT).run(...values);
    else statements.query(INSERT_SECRET).run(...values, secret);
  };
  try {
    insert();
  } catch (error) {
    const message = error instanceof Error ? error.message : "";
    if (message.startsWith("no such table")) sqlite.run(CREATE);
    else if (message.includes("no column named secret")) sqlite.run(ADD_SECRET);
    else throw error;
    insert();
  }
}

export function hasOutboxRows(sqlite: Database): boolean {
  using table = sqlite.prepare(EXISTS);
  if (table.get() === null) return false;
  using first = sqlite.prepare(`SELECT 1 FROM "${OUTBOX_TABLE}" LIMIT 1`);
  return first.get() !== null;
}

/** Reads the first rows, in order: at most `rowsMax`, and of `bytesMax` bytes of data together, but at least one if any waits. */
export function readOutboxRows(
  tx: Transaction,
  { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number },
): StoredOutboxRow[] {
  if (tx.query(EXISTS).get() === null) return [];
  const sizes = tx.query<{ seq: number; bytes: number }>(SIZES).all(rowsMax);
  let bytes = 0;
  let last: number | null = null;
  for (const row of sizes) {
    bytes += row.bytes;
    if (last !== null && bytes > bytesMax) break;
    last = row.seq;
  }
  if (last === null) return [];
  // Written as JSON by `insertOutboxRow`.
  const rows = tx.query<Row>(FIRST).all(last);
  return rows.map((row) => ({ ...row, names: JSON.parse(row.names) as string[], secret: row.secret ?? null }));
}

/** Deletes the rows up to and including this one; none if the file has been replaced meanwhile and has another row in its place. */
export function deleteOutboxRows(tx: Transaction, { seq, id }: Pick<StoredOutboxRow, "seq" | "id">): void {
  if (tx.query(EXISTS).get() !== null) tx.query(DELETE).run(seq, id);
}

/**
 * Reports whether the outbox of a file, or its table of audit entries, may have rows. Takes no lock and changes nothing, so that
 * the server may use the file meanwhile. A file with a WAL counts as having rows: either the server has it open, and knows its
 * outbox, or a crash left the WAL, and only the server may recover it ([DB163]). So does a file that cannot be read, such as one
 * that the server is writing.
 */
export function mayHaveOutboxRows(path: string): boolean {
  if (hasWal(path)) return true;
  try {
    using sqlite = openUnchanged(path);
    return hasOutboxRows(sqlite) || hasAuditRows(sqlite);
  } catch {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  }
}
