import type { Database } from "bun:sqlite";
import type { Clock } from "../../../kernel/clock.ts";
import { AppError, clientGone } from "../../../kernel/errors.ts";
import { currentSteps } from "../../../kernel/observing/request-trace.ts";
import {
  FORGET_TIMEOUT_MS,
  LARGE_PAGE_BYTES,
  PAGES_MAX,
  READ_PLACE_BYTES,
  READ_PROCESS_IDLE_MS,
  WAITING_READS_MAX,
} from "../limits.ts";
import type { Job, Refusals } from "../processes/job.ts";
import { ProcessPool } from "../processes/pool.ts";
import { queryError } from "../processes/query-error.ts";
import { type SentValues, sentValues } from "../processes/sent-values.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import type { ReadCaller, ReadResult, SqlValue } from "../types.ts";
import type { ForgetRequest, QueryAnswer, QueryRequest, RankRequest, SentStatement } from "./requests.ts";

export interface LongRead<R> extends Omit<QueryRequest, "op" | "params"> {
  params: readonly SqlValue[];
  timeoutMs: number;
  caller: ReadCaller;
  signal: AbortSignal | undefined;
  /** Aborts when the file ends. */
  ended?: AbortSignal;
  /** Called for each row as it arrives, so that a large result is decoded over several turns of the event loop. */
  decode: (values: unknown[]) => R;
  /** The connection of the main thread, for the plan of the statement in the story of the request. */
  file: Database;
}

/** Runs long reads in processes that can be killed. [DB16]–[DB20] [DB120]–[DB127] */
export class LongReads {
  readonly #pool: ProcessPool;
  readonly #pages = new PagePlaces();
  /** Callers with a large page in memory. Their further pages belong to the same answer and need no place. */
  readonly #keeping = new WeakSet<ReadCaller>();

  constructor({ clock, processesMax }: { clock: Clock; processesMax: number }) {
    this.#pool = new ProcessPool({
      clock,
      program: "db/reads/read-job",
      settings: null,
      processesMax,
      placesMax: WAITING_READS_MAX,
      idleMs: READ_PROCESS_IDLE_MS,
      shareOf: (caller, free) => (caller === SERVER_CALLER.callerName ? Number.POSITIVE_INFINITY : shareOf(free)),
    });
  }

  get running(): number {
    return this.#pool.running;
  }

  get waiting(): number {
    return this.#pool.waiting;
  }

  async query<R>({
    timeoutMs,
    caller,
    signal,
    ended,
    decode,
    params,
    rank,
    file,
    ...statement
  }: LongRead<R>): Promise<ReadResult<R>> {
    const { callerName } = caller;
    const sent = { params: sentValues(params), rank: rank === null ? null : sentRank(rank) };
    const request: QueryRequest = { ...statement, ...sent, op: "query" };
    let rows: R[] = [];
    let endPage = (): void => {};
    const take = (part: unknown): void => {
      // The program sends rows as arrays.
      for (const values of part as unknown[][]) rows.push(decode(values));
    };
    const ends = [
      { signal, reason: () => signal?.reason },
      { signal: ended, reason: () => ended?.reason },
      { signal: caller.signal, reason: clientGone },
    ];
    const job: Job = {
      request,
      caller: callerName,
      places: 1 + Math.floor((bytesOf(params) + rankBytes(request)) / READ_PLACE_BYTES),
      waitMs: timeoutMs,
      runMs: timeoutMs,
      signals: ends.flatMap(({ signal, reason }) => (signal === undefined ? [] : [{ signal, reason }])),
      refusals: refusals("The query", timeoutMs),
      failed: queryError,
      resource: request.path,
      mayStart: () => request.page === null || this.#keeping.has(caller) || this.#pages.mayAdd(callerName),
      onStart: () => {
        if (request.page === null || this.#keeping.has(caller)) return;
        endPage = this.#pages.add(callerName, () => this.#pool.wake());
      },
      take,
      restart: () => {
        rows = [];
      },
    };
    const startedAt = performance.now();
    try {
      // The type of the program's answer to a query.
      const last = (await this.#pool.run(job)) as QueryAnswer;
      take(last.rows);
      // A large page is in memory until its answer has been sent.
      if (last.bytes > LARGE_PAGE_BYTES && caller.keepUntilSent !== undefined) {
        this.#keeping.add(caller);
        caller.keepUntilSent(() => {
          this.#keeping.delete(caller);
          endPage();
        });
      } else endPage();
      return { rows, bytes: last.bytes, isCut: last.isCut };
    } catch (cause) {
      endPage();
      throw cause;
    } finally {
      const { sql, path } = request;
      currentSteps()?.query(startedAt, { sql, path, file, isElsewhere: true });
    }
  }

  /** Makes the processes close `path`. A busy one does so after its statement and is not waited for. */
  async forget(path: string): Promise<void> {
    const request: ForgetRequest = { op: "forget", path };
    await this.#pool.forget(path, {
      request,
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: FORGET_TIMEOUT_MS,
      runMs: FORGET_TIMEOUT_MS,
      signals: [],
      refusals: refusals("The close", FORGET_TIMEOUT_MS),
      failed: queryError,
    });
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }
}

const refusals = (subject: string, timeoutMs: number): Refusals => ({
  queueFull: () => new AppError(503, `Too many long reads are waiting (at most ${WAITING_READS_MAX})`),
  waitedTooLong: () => new AppError(503, "Too many long reads are under way"),
  ranTooLong: () => new AppError(408, `${subject} took longer than ${timeoutMs} ms and was stopped`),
  ended: (exit) => new Error(`a query process ended by itself (${exit})`),
});

/** Encodes the values of the statements that rank. */
function sentRank(rank: RankRequest): RankRequest {
  const sent = ({ sql, params }: SentStatement): SentStatement =>
    typeof params === "string" ? { sql, params } : { sql, params: sentValues(params) };
  const { candidates, counts, others } = rank;
  return {
    ...rank,
    candidates: sent(candidates),
    counts: counts.map(sent),
    others: others === null ? null : sent(others),
  };
}

function rankBytes({ rank }: QueryRequest): number {
  if (rank === null) return 0;
  const { candidates, counts, others } = rank;
  return [candidates, ...counts, ...(others === null ? [] : [others])].reduce(
    (sum, { params }) => sum + bytesOf(params),
    0,
  );
}

/** Estimates the memory that the values of a statement take. */
function bytesOf(params: SentValues<SqlValue>): number {
  if (typeof params === "string") return params.length;
  let bytes = 0;
  for (const value of params) {
    if (typeof value === "string") bytes += value.length;
    else bytes += value instanceof Uint8Array ? value.byteLength : 8;
  }
  return bytes;
}

/** Returns the share of one caller: at most half of what is left, and at least one place. [DB120] */
const shareOf = (left: number): number => Math.ceil(left / 2);

/** Places of the pages that are read or being sent: each may take some megabytes, so they are few. [DB127] */
export class PagePlaces {
  readonly #taken = new Map<string, number>();
  #total = 0;

  mayAdd(caller: string): boolean {
    if (this.#total >= PAGES_MAX) return false;
    return caller === SERVER_CALLER.callerName || (this.#taken.get(caller) ?? 0) < shareOf(PAGES_MAX - this.#total);
  }

  /** Takes a place. Returns the function that ends it; only its first call counts. */
  add(caller: string, onEnd: () => void): () => void {
    this.#total += 1;
    this.#taken.set(caller, (this.#taken.get(caller) ?? 0) + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#total -= 1;
      const left = (this.#taken.get(caller) ?? 1) - 1;
      if (left > 0) this.#taken.set(caller, left);
      else this.#taken.delete(caller);
      onEnd();
    };
  }
}
