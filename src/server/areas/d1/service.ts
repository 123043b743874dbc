import type { Clock } from "../../../kernel/clock.ts";
import { AppError, clientGone } from "../../../kernel/errors.ts";
import { freeBytes } from "../../../kernel/free-bytes.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { SqlAccessor } from "../../config/app/index.ts";
import { type AnswerText, SERVER_CALLER } from "../../db/index.ts";
import type { AnswerRoom } from "../../db/processes/answer-room.ts";
import type { Job } from "../../db/processes/job.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { sentValues } from "../../db/processes/sent-values.ts";
import { runForText, textOf } from "../../db/processes/text-answer.ts";
import { hasLargeJournal } from "./database-file.ts";
import {
  BODY_START_BYTES,
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
} from "./query.ts";

/** The JSON of the answer. */
export interface SqlAnswer extends AnswerText {
  /** The statement may have changed the database. */
  isWrite: boolean;
}

export interface SqlService {
  /**
   * Runs one statement. A write is on disk when it resolves. Errors: 400 with SQLite's message, 408 after 30 s, 413 for too many
   * rows, 503, 507. The caller's signal ends a read; a write runs to its end.
   */
  query(query: QueryRequest, caller: QueryCaller): Promise<SqlAnswer>;
  /** Like `query`, for the bytes of a request's body, which are freed. Errors: also 400 for a body that is not a query. */
  queryBody(blocks: readonly Uint8Array<ArrayBuffer>[], caller: QueryCaller): Promise<SqlAnswer>;
  stop(): Promise<void>;
}

export function createSqlService(deps: {
  path: string;
  readers: Queries;
  writer: Queries;
  logger: Logger;
}): SqlService {
  const { path, readers, writer, logger } = deps;
  /** The error of all further queries, set by a failed sync. */
  let failure: AppError | null = null;
  const assertUsable = (): void => {
    if (failure !== null) throw failure;
  };
  const errorOf = ({ status, message, data, isFinal }: QueryFailure): AppError => {
    if (isFinal === true) {
      logger.error("a sync of a d1 database failed", { path, message });
      failure ??= new AppError(503, FAILED_MESSAGE);
      return failure;
    }
    if (status !== 500) return new AppError(status, message, { data });
    logger.error("a d1 query failed", { path, message });
    return new AppError(500, "Internal error");
  };
  const runOn = (role: ProcessRole, query: Query, caller: QueryCaller): Promise<QueryAnswer> =>
    role === "reader" ? readers.run(query, caller) : writer.run(query, { ...caller, signal: undefined });
  /** null: the statement needs neither role. */
  const run = async (query: Query, caller: QueryCaller): Promise<SqlAnswer | null> => {
    const likely = likelyRole(query);
    try {
      for (const role of [likely, likely === "reader" ? "writer" : "reader"] as const) {
        const answer = await runOn(role, query, caller);
        if (answer !== null) return { ...answer, isWrite: role === "writer" };
      }
      return null;
    } catch (cause) {
      writer.settle();
      throw cause instanceof QueryError ? errorOf(cause.failure) : cause;
    }
  };
  const answer = async (query: Query, caller: QueryCaller): Promise<SqlAnswer> => {
    assertUsable();
    const found = await run(query, caller);
    if (found === null) {
      throw new AppError(503, "The database's schema changed while the query was read; it may be sent again");
    }
    if (failure !== null) found.release();
    assertUsable();
    return found;
  };

  return {
    query: (query, caller) => answer({ kind: "parsed", query }, caller),
    async queryBody(blocks, caller) {
      try {
        return await answer({ kind: "body", blocks }, caller);
      } finally {
        for (const block of blocks) freeBytes(block);
      }
    },
    async stop() {
      await Promise.all([readers.stop(), writer.stop()]);
    },
  };
}

const FAILED_MESSAGE =
  "The disk failed to keep a write: this database answers nothing until the server has been restarted. Check the disk first";

/** Statements that begin with these words most likely write. */
const WRITING = /^\s*(?:insert|replace|update|delete|create|drop|alter|reindex|analyze|vacuum)\b/i;

/** The role that a query probably needs. SQLite determines it when it compiles the statement; a wrong guess costs a second try. */
function likelyRole(query: Query): ProcessRole {
  return WRITING.test(query.kind === "parsed" ? query.query.sql : startOfQuery(query.blocks)) ? "writer" : "reader";
}

/** The first characters of the statement in the bytes of a body. */
function startOfQuery(blocks: readonly Uint8Array[]): string {
  const first = blocks.find(({ byteLength }) => byteLength > 0);
  const text = Buffer.from(first?.subarray(0, BODY_START_BYTES) ?? []).toString("latin1");
  return /^\s*\{\s*"query"\s*:\s*"(.*)/s.exec(text)?.[1] ?? "";
}

/** `app.sql(name)`: the same service, its arguments checked as a request's are. */
export function createSqlAccessor(service: SqlService): SqlAccessor {
  return {
    async query(sql, params = []) {
      const answer = await service.query(parseQuery(jsonCopy({ query: sql, params })), SERVER_CALLER);
      answer.release();
      return JSON.parse(textOf(answer));
    },
  };
}

/** Callers share the processes fairly. */
export interface QueryCaller {
  callerName: string;
  /** Ends the waiting or running query when it aborts; undefined for a query that runs to its end. */
  signal: AbortSignal | undefined;
}

/** The processes of one role for one database. */
export interface Queries {
  /**
   * Errors: QueryError for what the process refuses; 408 after the time limit, when the query has really ended; 503 when too many
   * wait, or the process ended by itself or could not be started.
   */
  run(query: Query, caller: QueryCaller): Promise<QueryAnswer>;
  /** Gives back the space of the write-ahead log, where a write that was ended has left a large one. Of the writer. */
  settle(): void;
  stop(): Promise<void>;
}

export function createQueries(options: {
  path: string;
  role: ProcessRole;
  processesMax: number;
  room: AnswerRoom;
  clock: Clock;
}): Queries {
  const { path, role, processesMax, room, clock } = options;
  const pool = new ProcessPool({
    clock,
    program: "areas/d1/process/query-job",
    settings: { path, role },
    processesMax,
    placesMax: QUEUE_MAX_QUERIES,
    idleMs: PROCESS_IDLE_MS,
  });
  return {
    run: (query, caller) => runForText(pool, { ...jobOf(query, caller), room }),
    settle() {
      if (!hasLargeJournal(path)) return;
      // What fails, as where a read goes on, is done when the next write begins.
      pool
        .run({ ...JOB, request: { kind: "settle" } satisfies ProgramRequest, caller: SETTLING, places: 1 })
        .catch(() => {});
    },
    stop: () => pool.stop({ graceMs: STOP_TIMEOUT_MS }),
  };
}

function jobOf(query: Query, { callerName, signal }: QueryCaller): Job {
  return {
    request: requestOf(query),
    ...(query.kind === "body" ? { attached: query.blocks } : null),
    caller: callerName,
    places: 1 + Math.floor(sizeOf(query) / QUEUE_PLACE_BYTES),
    ...JOB,
    signals: signal === undefined ? [] : [{ signal, reason: clientGone }],
  };
}

function requestOf(query: Query): ProgramRequest {
  if (query.kind === "body") return { kind: "body" };
  const { sql, params } = query.query;
  return { kind: "parsed", sql, params: sentValues(params) };
}

const REFUSALS: Job["refusals"] = {
  queueFull: () => new AppError(503, "Too many queries are waiting for this database"),
  waitedTooLong: () =>
    new AppError(408, `The query waited ${QUEUE_TIMEOUT_MS / SECOND_MS} s for others and has not begun`),
  ranTooLong: () => new AppError(408, `The query was ended after ${QUERY_TIMEOUT_MS / SECOND_MS} s`),
  ended: () => new AppError(503, "The query process ended unexpectedly; the query may be sent again"),
};

/** What all jobs have in common. */
const JOB = {
  waitMs: QUEUE_TIMEOUT_MS,
  runMs: QUERY_TIMEOUT_MS,
  signals: [],
  refusals: REFUSALS,
  failed: (failure: unknown) => new QueryError(failure as QueryFailure), // What the program's `failureOf` gives.
} satisfies Partial<Job>;

/** The caller of what the server does by itself. */
const SETTLING = "server";

/** Roughly the memory that a waiting query takes. */
function sizeOf(query: Query): number {
  if (query.kind === "body") return sizeOfBytes(query.blocks);
  const { sql, params } = query.query;
  return params.reduce((sum: number, value) => sum + (typeof value === "string" ? value.length : 8), sql.length);
}

const sizeOfBytes = (list: readonly Uint8Array[]): number => list.reduce((sum, { byteLength }) => sum + byteLength, 0);
