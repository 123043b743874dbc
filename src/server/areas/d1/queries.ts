import type { Clock } from "../../../kernel/clock.ts";
import { AppError, clientGone } from "../../../kernel/errors.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { AnswerRoom } from "../../db/processes/answer-room.ts";
import type { Job } from "../../db/processes/job.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { sentValues } from "../../db/processes/sent-values.ts";
import { runForText } from "../../db/processes/text-answer.ts";
import { hasLargeJournal } from "./journal.ts";
import {
  PROCESS_IDLE_MS,
  QUERY_TIMEOUT_MS,
  QUEUE_MAX_QUERIES,
  QUEUE_PLACE_BYTES,
  QUEUE_TIMEOUT_MS,
  STOP_TIMEOUT_MS,
} from "./limits.ts";
import { QueryError } from "./process/query-failure.ts";
import type { ProcessRole, ProgramRequest, Query, QueryAnswer, QueryFailure } from "./types.ts";

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
