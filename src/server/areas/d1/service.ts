import { statSync } from "node:fs";
import type { Clock } from "../../../kernel/clock.ts";
import { AppError, clientGone } from "../../../kernel/errors.ts";
import { freeBytes } from "../../../kernel/free-bytes.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { currentSteps } from "../../../kernel/observing/request-trace.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { SqlAccessor } from "../../config/app/index.ts";
import { type AnswerText, SERVER_CALLER } from "../../db/index.ts";
import type { AnswerRoom } from "../../db/processes/answer-room.ts";
import type { Job } from "../../db/processes/job.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { sentValues } from "../../db/processes/sent-values.ts";
import { runForText, textOf } from "../../db/processes/text-answer.ts";
import { hasLargeLog, logBytes, type SqlFile } from "./database-file.ts";
import {
  BODY_START_BYTES,
  LOG_CHECK_MS,
  LOG_OVER_DATABASE_MAX_BYTES,
  LOG_PAGES,
  PROCESS_IDLE_MS,
  QUERY_TIMEOUT_MS,
  QUEUE_MAX_QUERIES,
  QUEUE_PLACE_BYTES,
  QUEUE_TIMEOUT_MS,
  STOP_TIMEOUT_MS,
} from "./limits.ts";
import {
  type ProcessRole,
  type ProgramRequest,
  parseQuery,
  type Query,
  type QueryAnswer,
  QueryError,
  type QueryFailure,
  type QueryRequest,
  type TablesRequest,
} from "./query.ts";

/** Caller of a query. Callers share the processes fairly. */
export interface QueryCaller {
  callerName: string;
  /** Ends the waiting or running query when it aborts; undefined for a query that runs to its end. */
  signal: AbortSignal | undefined;
}

interface QueriesOptions {
  file: SqlFile;
  role: ProcessRole;
  processesMax: number;
  room: AnswerRoom;
  clock: Clock;
  /** Bytes by which the write-ahead log may exceed the database. Default: LOG_OVER_DATABASE_MAX_BYTES. */
  logOverDatabaseMaxBytes?: number;
}

/** Query processes of one role for one database. */
export class Queries {
  readonly #options: QueriesOptions;
  readonly #pool: ProcessPool;
  /** Pages in the log at which it is moved next; null: that is under way. */
  #moveAt: number | null = LOG_PAGES;

  constructor(options: QueriesOptions) {
    const { file, role, processesMax, clock } = options;
    this.#options = options;
    this.#pool = new ProcessPool({
      clock,
      program: "areas/d1/process/query-job",
      settings: { path: file.path, role },
      processesMax,
      placesMax: QUEUE_MAX_QUERIES,
      idleMs: PROCESS_IDLE_MS,
    });
  }

  /**
   * Runs one query. Errors: QueryError for what the process refuses; 408 after the time limit, once the query has really ended; 413
   * for a write whose log grows too large; 503 if too many wait, or the process exited or could not be started.
   */
  async run(query: Query, caller: QueryCaller): Promise<QueryAnswer> {
    const { file, role, room } = this.#options;
    const job = { ...jobOf(query, caller), room };
    if (role === "reader") return runForText(this.#pool, job);
    if (this.#isLogFull()) {
      this.settle();
      throw new AppError(503, "Long reads keep the database's log from being emptied; the query may be sent again");
    }
    const tooLarge = new AbortController();
    let unwatch = (): void => {};
    const watch = (): void => {
      if (this.#isLogFull()) tooLarge.abort();
      else unwatch = this.#options.clock.after(LOG_CHECK_MS, watch);
    };
    const signals = [...job.signals, { signal: tooLarge.signal, reason: logTooLarge }];
    try {
      return await file.gate.elsewhere(
        (answer) => runForText(this.#pool, { ...job, signals, onStart: watch, answer }),
        () => {},
      );
    } finally {
      unwatch();
      this.settle();
    }
  }

  /** Moves the write-ahead log into the database if it is long, or if a killed write has left a large one. For writers only. */
  settle(): void {
    const { file } = this.#options;
    if (this.#moveAt === null || (file.loggedPages() < this.#moveAt && !hasLargeLog(file.path))) return;
    this.#moveAt = null;
    const request: ProgramRequest = { kind: "settle" };
    const moved = file.gate.elsewhere(
      (answer) => this.#pool.run({ ...JOB, request, caller: "server", places: 1, answer }),
      () => {},
    );
    // If it fails, for instance because of a running read, a later write tries again. One that succeeds restarts the log at the next
    // write.
    const again = (pages: number): void => {
      this.#moveAt = pages + LOG_PAGES;
    };
    moved.then(
      () => again(0),
      () => again(file.loggedPages()),
    );
  }

  stop(): Promise<void> {
    return this.#pool.stop({ graceMs: STOP_TIMEOUT_MS });
  }

  /** Whether the write-ahead log exceeds its bound, which grows with the database, as a VACUUM writes all of it to the log once. */
  #isLogFull(): boolean {
    const { file, logOverDatabaseMaxBytes = LOG_OVER_DATABASE_MAX_BYTES } = this.#options;
    const { path } = file;
    const size = logBytes(path);
    if (size <= logOverDatabaseMaxBytes) return false;
    return size > logOverDatabaseMaxBytes + (statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  }
}

const logTooLarge = (): AppError =>
  new AppError(413, "The statement writes too much at once and was ended: split it into several");

/** Returns the job that runs a query, with the limits that all have. */
export function jobOf(query: Query, { callerName, signal }: QueryCaller): Job & { request: TablesRequest["query"] } {
  return {
    request: requestOf(query),
    ...(query.kind === "body" ? { attached: query.blocks } : null),
    caller: callerName,
    places: 1 + Math.floor(sizeOf(query) / QUEUE_PLACE_BYTES),
    ...JOB,
    signals: signal === undefined ? [] : [{ signal, reason: clientGone }],
  };
}

function requestOf(query: Query): TablesRequest["query"] {
  if (query.kind === "body") return { kind: "body" };
  const { sql, params } = query.query;
  return { kind: "parsed", sql, params: sentValues(params) };
}

/** Estimates the bytes of memory that a waiting query takes. */
function sizeOf(query: Query): number {
  if (query.kind === "body") return query.blocks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const { sql, params } = query.query;
  return params.reduce((sum: number, value) => sum + (typeof value === "string" ? value.length : 8), sql.length);
}

/** Settings common to all jobs. */
const JOB = {
  waitMs: QUEUE_TIMEOUT_MS,
  runMs: QUERY_TIMEOUT_MS,
  signals: [],
  refusals: {
    queueFull: () => new AppError(503, "Too many queries are waiting for this database"),
    waitedTooLong: () =>
      new AppError(408, `The query waited ${QUEUE_TIMEOUT_MS / SECOND_MS} s for others and has not begun`),
    ranTooLong: () => new AppError(408, `The query was ended after ${QUERY_TIMEOUT_MS / SECOND_MS} s`),
    ended: () => new AppError(503, "The query process ended unexpectedly; the query may be sent again"),
  },
  failed: (failure: unknown) => new QueryError(failure as QueryFailure), // What the program's `failureOf` returns.
} satisfies Partial<Job>;

/** JSON of the answer to a query. */
export interface SqlAnswer extends AnswerText {
  /** Whether the statement may have changed the database. */
  isWrite: boolean;
}

type Processes = Pick<Queries, "run" | "settle" | "stop">;

/** Runs the statements of one database. */
export class SqlService {
  readonly #path: string;
  readonly #readers: Processes;
  readonly #writer: Processes;
  readonly #logger: Logger;
  /** Error of all further queries, set by a failed sync. */
  #failure: AppError | null = null;

  constructor(deps: { path: string; readers: Processes; writer: Processes; logger: Logger }) {
    this.#path = deps.path;
    this.#readers = deps.readers;
    this.#writer = deps.writer;
    this.#logger = deps.logger;
  }

  /**
   * Runs one statement. A write is on disk when it resolves. Errors: 400 with SQLite's message, 408 after 30 s, 413 for too many
   * rows or a write that is too large, 503, 507. The caller's signal ends a read; a write runs to its end.
   */
  query(query: QueryRequest, caller: QueryCaller): Promise<SqlAnswer> {
    return this.#answer({ kind: "parsed", query }, caller);
  }

  /** Runs the statement in a request's body, whose bytes are freed. Errors: those of `query`, and 400 for a body that is not a query. */
  async queryBody(blocks: readonly Uint8Array<ArrayBuffer>[], caller: QueryCaller): Promise<SqlAnswer> {
    try {
      return await this.#answer({ kind: "body", blocks }, caller);
    } finally {
      for (const block of blocks) freeBytes(block);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#readers.stop(), this.#writer.stop()]);
  }

  async #answer(query: Query, caller: QueryCaller): Promise<SqlAnswer> {
    if (this.#failure !== null) throw this.#failure;
    const [startedAt, steps] = [performance.now(), currentSteps()];
    const found = await this.#run(query, caller);
    steps?.query(startedAt, { sql: shownText(query, found), path: this.#path, file: null, isElsewhere: true });
    if (found === null) {
      throw new AppError(503, "The database's schema changed while the query was read; it may be sent again");
    }
    if (this.#failure === null) return found;
    found.release();
    throw this.#failure;
  }

  /** Runs a query in the process of its role. Resolves to null if the statement needs neither role. */
  async #run(query: Query, caller: QueryCaller): Promise<SqlAnswer | null> {
    const likely = likelyRole(query);
    try {
      for (const role of [likely, likely === "reader" ? "writer" : "reader"] as const) {
        const isWrite = role === "writer";
        const answer = isWrite
          ? await this.#writer.run(query, { ...caller, signal: undefined })
          : await this.#readers.run(query, caller);
        if (answer !== null) return { ...answer, isWrite };
      }
      return null;
    } catch (cause) {
      this.#writer.settle();
      throw cause instanceof QueryError ? this.#errorOf(cause.failure) : cause;
    }
  }

  #errorOf(failure: QueryFailure): AppError {
    const path = this.#path;
    if (failure.isFinal !== true) return errorOf(failure, { path, logger: this.#logger });
    this.#logger.error("d1: sync failed", { path, message: failure.message });
    this.#failure ??= new AppError(503, FAILED_MESSAGE);
    return this.#failure;
  }
}

/** Returns the error of a failed query for its caller; one of the server is logged. */
export function errorOf(
  { status, message, data }: QueryFailure,
  { path, logger }: { path: string; logger: Logger },
): AppError {
  if (status !== 500) return new AppError(status, message, { data });
  logger.error("d1: query failed", { path, message });
  return new AppError(500, "Internal error");
}

const FAILED_MESSAGE =
  "The disk failed to keep a write: this database answers nothing until the server has been restarted. Check the disk first";

/** First words of statements that most likely write. */
const WRITING = /^\s*(?:insert|replace|update|delete|create|drop|alter|reindex|analyze|vacuum)\b/i;

/** Guesses the role that a query needs. SQLite determines it when it compiles the statement; a wrong guess costs a second try. */
function likelyRole(query: Query): ProcessRole {
  return WRITING.test(query.kind === "parsed" ? query.query.sql : startOfQuery(query.blocks)) ? "writer" : "reader";
}

/** Returns the first characters of the statement in the bytes of a body. */
function startOfQuery(blocks: readonly Uint8Array[]): string {
  const first = blocks.find(({ byteLength }) => byteLength > 0);
  const text = Buffer.from(first?.subarray(0, BODY_START_BYTES) ?? []).toString("latin1");
  return /^\s*\{\s*"query"\s*:\s*"(.*)/s.exec(text)?.[1] ?? "";
}

/** Returns the text of a query for the story of its request; the process alone has that of a body, and tells those of writes. */
const shownText = (query: Query, answer: { note: string | null } | null): string =>
  query.kind === "parsed" ? query.query.sql : (answer?.note ?? "SELECT …");

/** Creates `app.sql(name)` for a service; arguments are checked like a request's body. */
export function createSqlAccessor(service: SqlService): SqlAccessor {
  return {
    async query(sql, params = []) {
      const answer = await service.query(parseQuery(jsonCopy({ query: sql, params })), SERVER_CALLER);
      answer.release();
      return JSON.parse(textOf(answer));
    },
  };
}
