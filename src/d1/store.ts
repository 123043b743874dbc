import { Database, SQLiteError, type SQLQueryBindings } from "bun:sqlite";
import { existsSync } from "node:fs";
import { assertOpenable, markFile } from "../db/file-identity.ts";
import { openError } from "../db/sqlite-errors.ts";
import { insufficientStorage, isDiskFull } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { BUSY_TIMEOUT_MS, JOURNAL_MAX_BYTES, RESULT_MAX_BYTES } from "./limits.ts";
import type { Binding, ProcessRole, QueryFailure, QueryRequest } from "./types.ts";

/** A query's failure on its way to the caller. */
export class QueryError extends Error {
  readonly failure: QueryFailure;
  constructor(failure: QueryFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** A statement has changed its connection, which other requests share: that connection is not used again. */
export class EscapeError extends QueryError {
  constructor() {
    super({ status: 400, message: "The statement would have changed more than its database, and was refused" });
  }
}

/**
 * Makes the file where there is none, in WAL mode, which lets reads and a write go on side by side. What lies beside the
 * file for that stays as long as this connection, so that processes can begin to read also when the disk is full.
 * Errors: one that names the file and what is wrong with it.
 */
export function keepDatabaseFile(path: string, ids: Ids): Database {
  let database: Database | null = null;
  try {
    if (existsSync(path)) assertOpenable(path);
    database = new Database(path, { create: true });
    database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    markFile(database, ids);
    database.run("PRAGMA journal_mode = WAL");
    database.query("SELECT count(*) FROM sqlite_schema").get();
    return database;
  } catch (error) {
    database?.close();
    throw openError(path, error);
  }
}

/**
 * A reader's connection cannot write, whatever is asked of it. A writer's commits are on disk when they return. Errors:
 * QueryError.
 */
export function openDatabase(path: string, role: ProcessRole): Database {
  try {
    return openAs(path, role);
  } catch (cause) {
    throw new QueryError(isDiskFull(cause) ? DISK_FULL : { status: 500, message: openError(path, cause).message });
  }
}

function openAs(path: string, role: ProcessRole): Database {
  const options = role === "reader" ? { readonly: true } : { readwrite: true };
  const database = new Database(path, { ...options, safeIntegers: true });
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  database.run("PRAGMA foreign_keys = ON");
  database.run("PRAGMA trusted_schema = OFF");
  if (role === "writer") {
    database.run("PRAGMA synchronous = FULL");
    database.run(`PRAGMA journal_size_limit = ${JOURNAL_MAX_BYTES}`);
  }
  return database;
}

/**
 * The JSON text of the HTTP answer. Errors: QueryError; EscapeError when the connection is to be closed. Spec: Native
 * resource endpoints; decisions 8.
 */
export function executeQuery(database: Database, request: QueryRequest): string {
  const outcome = attempt(() => perform(database, request));
  // Whatever has passed `parseStatement`, and however it has ended.
  if (database.inTransaction || !isAlone(database)) throw new EscapeError();
  if (outcome instanceof QueryError) throw outcome;
  return outcome;
}

function attempt(work: () => string): string | QueryError {
  try {
    return work();
  } catch (cause) {
    return cause instanceof QueryError ? cause : new QueryError(failureOf(cause));
  }
}

function perform(database: Database, { sql, params, mode }: QueryRequest): string {
  const startedAt = performance.now();
  const result =
    mode === "write" ? inTransaction(database, () => run(database, sql, params)) : run(database, sql, params);
  const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000;
  const meta = { changes: result.changes, rows_read: result.rowCount, duration: durationMs };
  return `{"results":[${result.rows}],"meta":${JSON.stringify(meta)}}`;
}

/** Whether the connection has its one file, and nothing temporary that the next request would see. */
function isAlone(database: Database): boolean {
  const names = database
    .query("PRAGMA database_list")
    .values()
    .map(([, name]) => name);
  if (names.some((name) => name !== "main" && name !== "temp")) return false;
  return !names.includes("temp") || database.query("SELECT 1 FROM temp.sqlite_schema LIMIT 1").get() === null;
}

interface QueryResult {
  rows: string;
  rowCount: number;
  changes: number;
}

function run(database: Database, sql: string, params: readonly Binding[]): QueryResult {
  const changesBefore = totalChanges(database);
  const statement = database.prepare<Record<string, unknown>, SQLQueryBindings[]>(sql);
  try {
    if (statement.paramsCount !== params.length) {
      throw new QueryError({
        status: 400,
        message: `The statement takes ${statement.paramsCount} parameters, got ${params.length}`,
      });
    }
    const rows = new RowWriter();
    for (const row of statement.iterate(...params.map(bindable))) rows.add(statement.columnNames, row);
    const hasChanged = totalChanges(database) !== changesBefore;
    return { rows: rows.text, rowCount: rows.count, changes: hasChanged ? ownChanges(database) : 0 };
  } finally {
    statement.finalize();
  }
}

/** Whole numbers are bound as integers of 64 bits: as they are, those beyond 32 bits would become REAL. */
const bindable = (value: Binding): SQLQueryBindings =>
  typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;

const totalChanges = (database: Database): unknown => database.query("SELECT total_changes()").values()[0]?.[0];
/** Rows that the last statement itself inserted, updated or deleted; those of triggers and cascades are not counted. */
const ownChanges = (database: Database): number => Number(database.query("SELECT changes()").values()[0]?.[0]);

/** SQLite commits a statement whose rows are not all fetched; in a transaction of ours it is undone. */
function inTransaction<T>(database: Database, work: () => T): T {
  database.run("BEGIN IMMEDIATE");
  try {
    const result = work();
    if (!isAlone(database)) throw new EscapeError();
    database.run("COMMIT");
    return result;
  } catch (cause) {
    // Some failures, and ON CONFLICT ROLLBACK, have ended the transaction already.
    if (database.inTransaction) database.run("ROLLBACK");
    throw cause;
  }
}

/** Rows as JSON objects, one after another, up to a bounded size. */
class RowWriter {
  text = "";
  count = 0;
  #sizeBytes = 0;
  #names: readonly (readonly [name: string, json: string])[] | null = null;

  add(columnNames: readonly string[], row: Record<string, unknown>): void {
    // Of columns with one name the last one counts, as in every object.
    this.#names ??= [...new Set(columnNames)].map((name) => [name, `${JSON.stringify(name)}:`] as const);
    let text = this.count++ === 0 ? "{" : ",{";
    let separator = "";
    for (const [name, json] of this.#names) {
      text += separator + json + jsonOf(row[name]);
      separator = ",";
    }
    this.text += `${text}}`;
    this.#sizeBytes += Buffer.byteLength(text) + 1;
    if (this.#sizeBytes > RESULT_MAX_BYTES) {
      throw new QueryError({ status: 413, message: `The rows must be at most ${RESULT_MAX_BYTES} bytes: use LIMIT` });
    }
  }
}

/** Integers beyond 2^53 become strings, blobs base64 strings, infinite numbers null. */
function jsonOf(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
  if (value instanceof Uint8Array)
    return `"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")}"`;
  return "null";
}

const DISK_FULL: QueryFailure = { status: 507, message: insufficientStorage().message };

/** SQLite's word for what the caller has done wrong; other trouble is the server's. */
function failureOf(cause: unknown): QueryFailure {
  if (isDiskFull(cause)) return DISK_FULL;
  const message = cause instanceof Error ? cause.message : String(cause);
  const code = cause instanceof SQLiteError ? (cause.code ?? "") : "";
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return { status: 503, message: "The database is busy" };
  if (/^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|PROTOCOL|PERM|INTERNAL)/.test(code)) return { status: 500, message };
  return { status: 400, message };
}
