import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import { creating, type DatabaseFile, foundIn, type Transaction } from "../../../db/index.ts";
import type { CallerKey } from "../../../http/exchange/idempotency-key.ts";
import {
  ANSWER_KEPT_MS,
  ANSWERS_SWEEP_MS,
  ANSWERS_SWEEP_PAUSE_MS,
  KEPT_BYTES_PER_CALLER_MAX,
  KEPT_PER_SERVICE_KEY_MAX,
  KEPT_PER_USER_MAX,
  SWEEP_EVERY_WRITES,
  SWEPT_AT_ONCE,
  SWEPT_BYTES,
  SWEPT_PER_WRITE,
} from "../limits.ts";
import type { Namespace } from "../records/namespaces.ts";

// Answers that a file keeps for the idempotency keys of its writes. The tables are created with the first one.

const ANSWERS = '"_platform_idempotency"';
const CALLERS = '"_platform_idempotency_callers"';
/** The answer is the last column, so that a sweep reads nothing of it. */
const CREATE = [
  `CREATE TABLE IF NOT EXISTS ${ANSWERS} (
    "number" INTEGER PRIMARY KEY, "key" BLOB NOT NULL UNIQUE, "caller" TEXT NOT NULL, "bytes" INTEGER NOT NULL,
    "keptAt" INTEGER NOT NULL, "request" BLOB NOT NULL, "status" INTEGER NOT NULL, "tables" TEXT, "answer" TEXT NOT NULL) STRICT`,
  `CREATE TABLE IF NOT EXISTS ${CALLERS} (
    "caller" TEXT NOT NULL PRIMARY KEY, "keys" INTEGER NOT NULL, "bytes" INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
];
const FIND = `SELECT "number", "caller", "bytes", "keptAt", "request", "status", "tables", "answer" FROM ${ANSWERS} WHERE "key" = ?`;
const OLDEST = `SELECT "number", "caller", "bytes", "keptAt" FROM ${ANSWERS} ORDER BY "number" LIMIT ?`;
/** `keptAt` is compared too: once an answer is gone, its number may be that of another one. */
const REMOVE = `DELETE FROM ${ANSWERS} WHERE "number" = ? AND "keptAt" = ?`;
const KEEP = `INSERT INTO ${ANSWERS} ("key", "caller", "bytes", "keptAt", "request", "status", "tables", "answer") VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const COUNT = `INSERT INTO ${CALLERS} ("caller", "keys", "bytes") VALUES (?1, ?2, ?3)
  ON CONFLICT ("caller") DO UPDATE SET "keys" = "keys" + ?2, "bytes" = "bytes" + ?3 RETURNING "keys", "bytes"`;
const FORGET = `DELETE FROM ${CALLERS} WHERE "caller" = ? AND "keys" <= 0`;
/** Bytes of a key's hash. */
const KEY_BYTES = 16;

interface Sized {
  number: number;
  caller: string;
  bytes: number;
  keptAt: number;
}

/** An answer as kept in the file. */
export interface KeptAnswer extends Sized {
  /** Digest of the request. */
  request: Uint8Array;
  status: number;
  /** JSON of each record's table, for a request about several tables; else null. */
  tables: string | null;
  /** Answer as JSON. */
  answer: string;
}

export interface NewAnswer {
  caller: string;
  /** Key in the form of `storedKey`. */
  key: Uint8Array;
  /** Whether the caller is a service key. */
  isServiceKey: boolean;
  /** Expired answer of the file for this key; null when there was none. */
  former: KeptAnswer | null;
  request: Uint8Array;
  status: number;
  tables: string | null;
  /** Returns the text of the answer; with `idsOnly`, of one that contains only the ids of its records. */
  answer(options: { idsOnly: boolean }): string;
}

export const isExpired = ({ keptAt }: { keptAt: number }, now: number): boolean => keptAt + ANSWER_KEPT_MS <= now;

/**
 * Whether a sweep removes the answer. Includes answers dated more than a day ahead by a wrong clock, which would otherwise hold
 * up the sweep of all later ones for as long.
 */
const isSwept = (kept: { keptAt: number }, now: number): boolean =>
  isExpired(kept, now) || kept.keptAt > now + ANSWER_KEPT_MS;

/** Returns the stored form of a key, in which the keys of different callers cannot collide. */
export const storedKey = ({ caller, key }: CallerKey): Uint8Array =>
  new Bun.CryptoHasher("sha256").update(`${caller}\0${key}`).digest().subarray(0, KEY_BYTES);

/** Returns the answer for this key, which may be expired; null when the file keeps none. */
export const findAnswer = (file: DatabaseFile, key: Uint8Array): KeptAnswer | null =>
  foundIn(TABLES, () => file.query<KeptAnswer>(FIND).get(key));

/** Begins the names of the tables of answers, which a file has once it has kept one. */
const TABLES = "_platform_idempotency";

/**
 * Keeps an answer in the transaction of its write. Errors: 429 for a caller with too many kept answers, which undoes the write.
 * [TB324]
 */
export function keepAnswer(tx: Transaction, answer: NewAnswer, now: number): void {
  const { caller, key, former, request, status, tables } = answer;
  if (former !== null) remove(tx, former);
  let text = answer.answer({ idsOnly: false });
  let bytes = Buffer.byteLength(text);
  const counted = countFirst(tx, caller, bytes);
  if (counted.keys > (answer.isServiceKey ? KEPT_PER_SERVICE_KEY_MAX : KEPT_PER_USER_MAX)) throw tooManyKeys();
  if (counted.bytes > KEPT_BYTES_PER_CALLER_MAX) {
    const wholeBytes = bytes;
    text = answer.answer({ idsOnly: true });
    bytes = Buffer.byteLength(text);
    const { bytes: keptBytes } = count(tx, caller, { keys: 0, bytes: bytes - wholeBytes });
    if (keptBytes > 2 * KEPT_BYTES_PER_CALLER_MAX) throw tooManyKeys();
  }
  const { lastInsertRowid } = tx.query(KEEP).run(key, caller, bytes, now, request, status, tables, text);
  if (Number(lastInsertRowid) % SWEEP_EVERY_WRITES === 0) sweepSome(tx, now, SWEPT_PER_WRITE);
}

const tooManyKeys = (): AppError =>
  new AppError(429, "Too many idempotency keys within 24 hours; write without a key, or later", {
    headers: { "retry-after": "3600" },
  });

interface Counted {
  keys: number;
  bytes: number;
}

/** Adjusts the caller's counts and returns them. */
const count = (tx: Transaction, caller: string, { keys, bytes }: Counted): Counted =>
  tx.query<Counted>(COUNT).get(caller, keys, bytes) ?? { keys, bytes };

/** Counts one more key. The first statement for each kept answer: it creates missing tables. */
const countFirst = (tx: Transaction, caller: string, bytes: number): Counted =>
  creating(tx, { name: TABLES, create: CREATE }, () => count(tx, caller, { keys: 1, bytes }));

function remove(tx: Transaction, { number, keptAt, caller, bytes }: Sized): void {
  // A sweep may have removed it.
  if (tx.query(REMOVE).run(number, keptAt).changes === 0) return;
  count(tx, caller, { keys: -1, bytes: -bytes });
  tx.query(FORGET).run(caller);
}

/** Removes up to `limit` expired answers, oldest first. Returns whether there may be more. */
export function sweepSome(tx: Transaction, now: number, limit: number): boolean {
  let bytes = 0;
  const oldest = tx.query<Sized>(OLDEST).all(limit);
  for (const kept of oldest) {
    if (!isSwept(kept, now)) return false;
    if (bytes >= SWEPT_BYTES) return true;
    bytes += kept.bytes;
    remove(tx, kept);
  }
  return oldest.length === limit;
}

/** Whether the file keeps an answer that a sweep would remove. */
export function hasExpired(file: DatabaseFile, now: number): boolean {
  const oldest = foundIn(TABLES, () => file.query<Sized>(OLDEST).get(1));
  return oldest !== null && isSwept(oldest, now);
}

/**
 * Sweeps expired answers of files that get no further keys, in short transactions. Instances are swept while they are open;
 * expired answers are never replayed, swept or not. [TB325]
 */
export function startAnswerSweep(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { namespaces, clock, logger } = deps;
  const failed = (cause: unknown): void =>
    logger.error("sweeping expired answers of idempotency keys failed", { cause });
  return startSweeping({
    clock,
    intervalMs: ANSWERS_SWEEP_MS,
    pauseMs: ANSWERS_SWEEP_PAUSE_MS,
    async sweep(stopping) {
      const now = clock.now();
      let isMore = false;
      for (const file of openFiles(namespaces)) {
        if (stopping.aborted) break;
        try {
          if (!hasExpired(file, now)) continue;
          if (await file.write((tx) => sweepSome(tx, now, SWEPT_AT_ONCE))) isMore = true;
        } catch (cause) {
          // The other files are swept nevertheless.
          failed(cause);
        }
      }
      return isMore;
    },
    onFailure: failed,
  });
}

function* openFiles(namespaces: ReadonlyMap<string, Namespace>): Generator<DatabaseFile> {
  for (const namespace of namespaces.values()) {
    if (namespace.kind === "static") yield namespace.file;
    else yield* namespace.instances.openFiles();
  }
}
