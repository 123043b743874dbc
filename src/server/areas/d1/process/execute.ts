import { DatabaseSync } from "node:sqlite";
import { type CommitMark, commitValues, OPEN_MARK, UPDATE_COMMIT } from "../../../db/writer/commit-gate.ts";
import { openError } from "../../../db/writer/sqlite-errors.ts";
import { hasLargeLog } from "../database-file.ts";
import { BUSY_TIMEOUT_MS, LOG_KEPT_BYTES, PARAMETERS_MAX, RESULT_MAX_BYTES, VALUE_MAX_BYTES } from "../limits.ts";
import { type Binding, EscapeError, failureOf, type ProcessRole, QueryError, type QueryRequest } from "../query.ts";
import { createJudge, type Judge, type Readable } from "./judge.ts";
import { bindings, parseStatement, type Statement, StatementError } from "./statement.ts";

/** A connection of a query process, and the judge of its statements. */
export interface QueryConnection {
  database: DatabaseSync;
  judge: Judge;
  role: ProcessRole;
  /** Prepared statements of the process itself that run with every query. */
  own: { databases: Prepared; totalChanges: Prepared; changes: Prepared; number: Prepared };
}

/**
 * Opens a connection. A reader's is read-only. A writer's commits are on disk when they return. `tables`: the only ones that may be read,
 * of a reader; null: everything. Errors: QueryError.
 */
export function openConnection(
  path: string,
  role: ProcessRole,
  tables: readonly string[] | null = null,
): QueryConnection {
  try {
    const database = new DatabaseSync(path, {
      readOnly: role === "reader",
      timeout: BUSY_TIMEOUT_MS,
      // On by default in SQLite; node:sqlite turns it off.
      enableDoubleQuotedStringLiterals: true,
      limits: { length: VALUE_MAX_BYTES },
    });
    database.exec("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF");
    if (role === "writer") {
      // Checkpoints are run by `moveLog` only, when the gate lets them.
      database.exec(
        `PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${LOG_KEPT_BYTES}`,
      );
    }
    const judge = createJudge(tables === null ? null : readableOf(database, tables));
    database.setAuthorizer((action, first, second, schema) => judge.authorize(action, first, second, schema));
    const own = {
      databases: database.prepare("SELECT name FROM pragma_database_list"),
      totalChanges: database.prepare("SELECT total_changes() AS count"),
      changes: database.prepare("SELECT changes() AS count"),
      number: database.prepare(UPDATE_COMMIT),
    };
    return { database, judge, role, own };
  } catch (cause) {
    throw new QueryError(failureOf(cause, (error) => openError(path, error).message));
  }
}

/** Returns what may be read where that is these tables. */
function readableOf(database: DatabaseSync, tables: readonly string[]): Readable {
  const existing = database.prepare("SELECT name FROM sqlite_schema UNION SELECT name FROM pragma_module_list").all();
  return {
    tables: new Set(tables.map((name) => name.toLowerCase())),
    existing: new Set(existing.map(({ name }) => String(name).toLowerCase())),
  };
}

/** Moves the write-ahead log into the database, and truncates a large one. */
export function moveLog(database: DatabaseSync, path: string): void {
  database.exec(`PRAGMA wal_checkpoint(${hasLargeLog(path) ? "TRUNCATE" : "PASSIVE"})`);
}

/** Returns the values of the commit row for a commit that is about to be made. */
export type NextMark = () => Promise<CommitMark>;

/**
 * Runs a query. Returns the JSON text of the HTTP answer; null if the statement needs the other role and was not run. Errors:
 * QueryError; EscapeError when the connection must be closed.
 */
export async function executeQuery(
  connection: QueryConnection,
  request: QueryRequest,
  nextMark: NextMark,
): Promise<string | null> {
  const outcome = await attempt(connection, request, nextMark);
  connection.judge.begin("own");
  // Checked after every statement, allowed or failed, in case the judge missed something.
  if (connection.database.isTransaction || !isAlone(connection)) throw new EscapeError();
  if (outcome instanceof QueryError) throw outcome;
  return outcome;
}

async function attempt(
  connection: QueryConnection,
  request: QueryRequest,
  nextMark: NextMark,
): Promise<string | null | QueryError> {
  const { judge, role } = connection;
  try {
    return await perform(connection, parseStatement(request.sql), { params: request.params, nextMark });
  } catch (cause) {
    if (cause instanceof QueryError) return cause;
    if (cause instanceof StatementError) return refusedQuery(cause.message);
    if (judge.refusal !== null) return refusedQuery(judge.refusal);
    // Some statements cannot be compiled on a read-only connection.
    if (role === "reader" && judge.isWrite) return null;
    return new QueryError(failureOf(cause));
  } finally {
    judge.begin("own");
  }
}

const refusedQuery = (message: string): QueryError =>
  new QueryError({ status: 400, message, data: { query: { code: "invalid_value", message } } });

async function perform(
  connection: QueryConnection,
  statement: Statement,
  { params, nextMark }: { params: readonly Binding[]; nextMark: NextMark },
): Promise<string | null> {
  const { database, judge, role } = connection;
  const startedAt = performance.now();
  const prepare = (): Prepared => {
    judge.begin(statement.kind === "vacuum" ? "vacuum" : "statement");
    return database.prepare(statement.sql);
  };
  let prepared = prepare();
  // A connection that meets a virtual table for the first time prepares what the table itself will write.
  if (role === "reader" && judge.isWrite) prepared = prepare();
  // An explained statement is only compiled; the same rules apply to it.
  const isWrite = statement.kind !== "explained" && (statement.kind === "vacuum" || judge.isWrite);
  if (isWrite !== (role === "writer")) return null;
  assertParameters(statement.parameters.length, params.length);
  const run = () => collect(connection, prepared, bindings(statement.parameters, params));
  const { rows, rowCount, changes } = !isWrite
    ? run()
    : statement.kind === "vacuum"
      ? await betweenMarks(connection, run, nextMark)
      : await inTransaction(connection, run, nextMark);
  const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000;
  const meta = { changes, rows_read: rowCount, duration: durationMs };
  return `{"results":[${rows}],"meta":${JSON.stringify(meta)}}`;
}

function assertParameters(wanted: number, given: number): void {
  if (wanted > PARAMETERS_MAX) {
    throw new QueryError({ status: 400, message: `A statement takes at most ${PARAMETERS_MAX} parameters` });
  }
  if (wanted !== given) {
    throw new QueryError({
      status: 400,
      message: `The statement takes ${wanted} ${wanted === 1 ? "parameter" : "parameters"}, got ${given}`,
    });
  }
}

/** Whether the connection has only its own file, and no temporary objects that the next request would see. */
function isAlone({ database, own }: QueryConnection): boolean {
  const names = own.databases.all().map(({ name }) => name);
  if (names.some((name) => name !== "main" && name !== "temp")) return false;
  return !names.includes("temp") || database.prepare("SELECT 1 FROM temp.sqlite_schema LIMIT 1").get() === undefined;
}

interface QueryResult {
  rows: string;
  rowCount: number;
  changes: number;
}

type Prepared = ReturnType<DatabaseSync["prepare"]>;

function collect(connection: QueryConnection, prepared: Prepared, values: ReturnType<typeof bindings>): QueryResult {
  const { own, role } = connection;
  const changesBefore = role === "reader" ? 0 : countOf(own.totalChanges);
  prepared.setReadBigInts(true);
  prepared.setReturnArrays(true);
  const rows = new RowWriter(prepared.columns().map(({ name }) => name));
  // With setReturnArrays each row is an array. The types of node:sqlite do not state this.
  for (const row of prepared.iterate(...values) as Iterable<unknown>) rows.add(row as unknown[]);
  const hasChanged = role === "writer" && countOf(own.totalChanges) !== changesBefore;
  return { rows: rows.text, rowCount: rows.count, changes: hasChanged ? countOf(own.changes) : 0 };
}

/** Reads a counter, such as `changes()`: rows that the last statement inserted, updated or deleted, without those of triggers. */
const countOf = (counter: Prepared): number => Number(counter.get()?.["count"]);

/**
 * Runs VACUUM, which commits by itself: an open mark in the commit row says so until the commit behind it. A file that is found with
 * the mark may have been changed or not.
 */
async function betweenMarks<T>(connection: QueryConnection, work: () => T, nextMark: NextMark): Promise<T> {
  await inTransaction(
    connection,
    () => {},
    async () => ({ ...(await nextMark()), nonce: OPEN_MARK }),
  );
  connection.judge.begin("vacuum");
  try {
    return work();
  } finally {
    await inTransaction(connection, () => {}, nextMark);
  }
}

/**
 * Runs `work` in a transaction with a number, and commits: SQLite would commit a statement on its own even if not all of its rows are
 * fetched.
 */
async function inTransaction<T>(
  { database, judge, own }: QueryConnection,
  work: () => T,
  nextMark: NextMark,
): Promise<T> {
  const run = (sql: string): void => {
    judge.begin("own");
    database.exec(sql);
  };
  run("BEGIN IMMEDIATE");
  try {
    judge.begin("statement");
    const result = work();
    judge.begin("own");
    own.number.run(...commitValues(await nextMark()));
    database.exec("COMMIT");
    return result;
  } catch (cause) {
    const { refusal } = judge;
    // Some failures, and ON CONFLICT ROLLBACK, already end the transaction.
    if (database.isTransaction) run("ROLLBACK");
    throw refusal === null ? cause : refusedQuery(refusal);
  }
}

/** Serialises rows as JSON objects, up to RESULT_MAX_BYTES. */
export class RowWriter {
  count = 0;
  readonly #parts: string[] = [];
  #sizeBytes = 0;
  /** Columns of the answer. If several have the same name, the last one counts, as in every object. */
  readonly #columns: readonly (readonly [index: number, json: string])[];

  constructor(names: readonly string[]) {
    const last = new Map(names.map((name, index) => [name, index]));
    this.#columns = [...last].map(([name, index]) => [index, `${JSON.stringify(name)}:`] as const);
  }

  get text(): string {
    return this.#parts.join("");
  }

  add(row: readonly unknown[]): void {
    // Checked before the row becomes text, which takes several times the memory.
    this.#assertFits(this.#columns.reduce((sum, [index]) => sum + lengthOf(row[index]), 0));
    let text = this.count++ === 0 ? "{" : ",{";
    let separator = "";
    for (const [index, json] of this.#columns) {
      text += separator + json + jsonOf(row[index]);
      separator = ",";
    }
    text += "}";
    this.#parts.push(text);
    this.#sizeBytes += Buffer.byteLength(text);
    this.#assertFits(0);
  }

  #assertFits(furtherBytes: number): void {
    if (this.#sizeBytes + furtherBytes <= RESULT_MAX_BYTES) return;
    throw new QueryError({ status: 413, message: `The rows must be at most ${RESULT_MAX_BYTES} bytes: use LIMIT` });
  }
}

/** Returns a lower bound of the bytes that a value takes as JSON. */
const lengthOf = (value: unknown): number =>
  typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 0;

/** Converts a value to JSON: integers beyond 2^53 become strings, blobs base64 strings, infinite numbers null. */
function jsonOf(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
  if (value instanceof Uint8Array)
    return `"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")}"`;
  return "null";
}
