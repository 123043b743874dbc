import type { DatabaseFile, Transaction } from "../../db/index.ts";
import { AppError } from "../../kernel/errors.ts";
import {
  ANSWER_KEPT_MS,
  KEPT_BYTES_PER_CALLER_MAX,
  KEPT_PER_SERVICE_KEY_MAX,
  KEPT_PER_USER_MAX,
  SWEPT_BYTES,
  SWEPT_PER_WRITE,
} from "../limits.ts";
import type { CallerKey } from "./key.ts";

// The answers that a file keeps for the keys of its writes. The tables are created by the first of them.

const ANSWERS = '"_platform_idempotency"';
const CALLERS = '"_platform_idempotency_callers"';
const CREATE = [
  `CREATE TABLE IF NOT EXISTS ${ANSWERS} (
    "number" INTEGER PRIMARY KEY, "key" TEXT NOT NULL UNIQUE, "caller" TEXT NOT NULL, "request" TEXT NOT NULL,
    "status" INTEGER NOT NULL, "answer" TEXT NOT NULL, "tables" TEXT, "bytes" INTEGER NOT NULL, "keptAt" INTEGER NOT NULL) STRICT`,
  `CREATE TABLE IF NOT EXISTS ${CALLERS} (
    "caller" TEXT NOT NULL PRIMARY KEY, "keys" INTEGER NOT NULL, "bytes" INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
];
const FIND = `SELECT "number", "caller", "request", "status", "answer", "tables", "bytes", "keptAt" FROM ${ANSWERS} WHERE "key" = ?`;
const OLDEST = `SELECT "number", "caller", "bytes", "keptAt" FROM ${ANSWERS} ORDER BY "number" LIMIT ?`;
const REMOVE = `DELETE FROM ${ANSWERS} WHERE "number" = ?`;
const KEEP = `INSERT INTO ${ANSWERS} ("key", "caller", "request", "status", "answer", "tables", "bytes", "keptAt") VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const COUNTED = `SELECT "keys", "bytes" FROM ${CALLERS} WHERE "caller" = ?`;
const COUNT = `INSERT INTO ${CALLERS} ("caller", "keys", "bytes") VALUES (?1, ?2, ?3)
  ON CONFLICT ("caller") DO UPDATE SET "keys" = "keys" + ?2, "bytes" = "bytes" + ?3`;
const FORGET = `DELETE FROM ${CALLERS} WHERE "caller" = ? AND "keys" <= 0`;

interface Sized {
  number: number;
  caller: string;
  bytes: number;
  keptAt: number;
}

/** An answer as its file keeps it. */
export interface KeptAnswer extends Sized {
  /** The digest of the request. */
  request: string;
  status: number;
  /** JSON. */
  answer: string;
  /** JSON: the table of each record, where the request has several; else null. */
  tables: string | null;
}

export interface NewAnswer {
  callerKey: CallerKey;
  /** Whether the caller is a service key. */
  isServiceKey: boolean;
  request: string;
  status: number;
  tables: string | null;
  /** The text of the answer; with `idsOnly`, of one with the ids of its records alone. */
  answer(options: { idsOnly: boolean }): string;
}

const isExpired = ({ keptAt }: { keptAt: number }, now: number): boolean => keptAt + ANSWER_KEPT_MS <= now;

/** The key as it is stored: callers cannot meet each other's keys. */
const storedKey = ({ caller, key }: CallerKey): string =>
  new Bun.CryptoHasher("sha256").update(`${caller}\0${key}`).digest("base64url");

/** null: nothing is kept for this key, or no longer. */
export function findAnswer(file: DatabaseFile, key: CallerKey, now: number): KeptAnswer | null {
  const kept = orNull(() => file.query<KeptAnswer>(FIND).get(storedKey(key)));
  return kept === null || isExpired(kept, now) ? null : kept;
}

/** null also for a file that has kept nothing yet, which lacks the tables. */
function orNull<T>(read: () => T | null): T | null {
  try {
    return read();
  } catch (cause) {
    if (isNoTable(cause)) return null;
    throw cause;
  }
}

const isNoTable = (cause: unknown): boolean =>
  cause instanceof Error && cause.message.startsWith("no such table: _platform_idempotency");

/**
 * Keeps an answer, in the transaction of its write. Errors: 429 for a caller with too many kept answers, which undoes the
 * write. [TB324]
 */
export function keepAnswer(tx: Transaction, answer: NewAnswer, now: number): void {
  try {
    sweepSome(tx, now, SWEPT_PER_WRITE);
  } catch (cause) {
    if (!isNoTable(cause)) throw cause;
    for (const sql of CREATE) tx.query(sql).run();
  }
  const { callerKey, isServiceKey, request, status, tables } = answer;
  const { caller } = callerKey;
  const key = storedKey(callerKey);
  // An expired one that is not swept yet.
  const former = tx.query<KeptAnswer>(FIND).get(key);
  if (former !== null) remove(tx, former);

  const counted = tx.query<{ keys: number; bytes: number }>(COUNTED).get(caller) ?? { keys: 0, bytes: 0 };
  if (counted.keys >= (isServiceKey ? KEPT_PER_SERVICE_KEY_MAX : KEPT_PER_USER_MAX)) throw tooManyKeys();
  let text = answer.answer({ idsOnly: counted.bytes >= KEPT_BYTES_PER_CALLER_MAX });
  let bytes = Buffer.byteLength(text);
  if (counted.bytes + bytes > KEPT_BYTES_PER_CALLER_MAX) {
    text = answer.answer({ idsOnly: true });
    bytes = Buffer.byteLength(text);
  }
  if (counted.bytes + bytes > 2 * KEPT_BYTES_PER_CALLER_MAX) throw tooManyKeys();
  tx.query(KEEP).run(key, caller, request, status, text, tables, bytes, now);
  tx.query(COUNT).run(caller, 1, bytes);
}

const tooManyKeys = (): AppError =>
  new AppError(429, "Too many idempotency keys within 24 hours; write without a key, or later", {
    headers: { "retry-after": "3600" },
  });

function remove(tx: Transaction, { number, caller, bytes }: Sized): void {
  tx.query(REMOVE).run(number);
  tx.query(COUNT).run(caller, -1, -bytes);
  tx.query(FORGET).run(caller);
}

/** Removes up to `limit` expired answers, the oldest first. Gives whether there may be more. */
export function sweepSome(tx: Transaction, now: number, limit: number): boolean {
  let bytes = 0;
  const oldest = tx.query<Sized>(OLDEST).all(limit);
  for (const kept of oldest) {
    if (!isExpired(kept, now)) return false;
    if (bytes >= SWEPT_BYTES) return true;
    bytes += kept.bytes;
    remove(tx, kept);
  }
  return oldest.length === limit;
}

/** Whether the file keeps an expired answer. */
export function hasExpired(file: DatabaseFile, now: number): boolean {
  const oldest = orNull(() => file.query<Sized>(OLDEST).get(1));
  return oldest !== null && isExpired(oldest, now);
}
