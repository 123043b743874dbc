import type { Clock } from "../kernel/clock.ts";
import { AppError } from "../kernel/errors.ts";
import { createHighlighter, createWordMarks } from "./highlight-process.ts";
import {
  HIGHLIGHT_BYTES_MAX,
  HIGHLIGHT_HITS_MAX,
  HIGHLIGHT_PHRASE_LENGTH,
  HIGHLIGHT_PIECE_LENGTH,
  QUERY_LOCK_TIMEOUT_MS,
  READ_CONNECTIONS_MAX,
  READ_PROCESS_IDLE_MS,
  READ_RESULT_BYTES_MAX,
  WAITING_READS_MAX,
} from "./limits.ts";
import { serveQueries } from "./query-process.ts";
import type { ProcessLimits, ProcessRequest, ProcessResponse, QueryMessage } from "./query-protocol.ts";
import type { SqlValue } from "./types.ts";

/** What SQLite said about a statement that ran in a query process. */
export class QueryError extends Error {
  /** SQLite's result code, extended; 0 when the statement was refused before SQLite saw it. */
  readonly errorCode: number;

  constructor(message: string, errorCode: number) {
    super(message);
    this.name = "QueryError";
    this.errorCode = errorCode;
  }
}

/** The result is larger than the reader wants it. */
export class ResultTooLarge extends QueryError {}

export interface QueryRequest extends Omit<QueryMessage, "id" | "op" | "params"> {
  params: readonly SqlValue[];
  timeoutMs: number;
  signal: AbortSignal | undefined;
}

type Unnumbered = ProcessRequest extends infer R ? (R extends ProcessRequest ? Omit<R, "id"> : never) : never;

interface Job {
  request: Unnumbered;
  timeoutMs: number | null;
  signal: AbortSignal | undefined;
  resolve: (result: unknown[][]) => void;
  reject: (error: unknown) => void;
  /** Ends what watches over the job: its timer, its signal. */
  unwatch: () => void;
}

interface QueryProcess {
  child: Bun.Subprocess;
  job: Job | null;
  /** The message that `job` was sent as. */
  jobId: number;
  /** Set when the process is being killed: what its job is told once it is gone. */
  verdict: unknown;
  paths: Set<string>;
  cancelIdle: () => void;
}

export interface QueryProcessesOptions {
  clock: Clock;
  processesMax: number;
}

/**
 * Runs statements in processes of their own. A process can be killed where a thread cannot: inside SQLite nothing of
 * ours runs, and a worker that is terminated there goes on until its statement ends. Processes start when they are
 * needed, end when they are idle, and die with the server. [DB16]–[DB20]
 */
export class QueryProcesses {
  readonly #clock: Clock;
  readonly #processesMax: number;
  readonly #processes = new Set<QueryProcess>();
  #waiting: Job[] = [];
  #lastId = 0;
  #isStopped = false;

  constructor(options: QueryProcessesOptions) {
    this.#clock = options.clock;
    this.#processesMax = options.processesMax;
  }

  get size(): number {
    return this.#processes.size;
  }

  get running(): number {
    let running = 0;
    for (const process of this.#processes) if (process.job !== null) running += 1;
    return running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  query(request: QueryRequest): Promise<unknown[][]> {
    const { timeoutMs, signal, params, ...rest } = request;
    return this.#submit({ ...rest, op: "query", params: params.map(asBinding) }, timeoutMs, signal);
  }

  async checkpoint(path: string): Promise<void> {
    await this.#submit({ op: "checkpoint", path }, null, undefined);
  }

  /** Has the processes close `path`. One that is busy does so after its statement and is not waited for. */
  async forget(path: string): Promise<void> {
    const answers: Promise<unknown>[] = [];
    for (const process of this.#processes) {
      if (!process.paths.delete(path) || process.verdict !== undefined) continue;
      if (process.job !== null) {
        this.#lastId += 1;
        process.child.send({ id: this.#lastId, op: "forget", path });
        continue;
      }
      answers.push(
        new Promise<unknown[][]>((resolve, reject) => {
          const request = { op: "forget" as const, path };
          this.#start(process, { request, timeoutMs: null, signal: undefined, resolve, reject, unwatch: () => {} });
        }).catch(() => undefined),
      );
    }
    await Promise.all(answers);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const stopped = new Error("the server is stopping");
    for (const job of this.#waiting) job.reject(stopped);
    this.#waiting = [];
    const exits = [...this.#processes].map((process) => {
      this.#kill(process, stopped);
      return process.child.exited;
    });
    await Promise.all(exits);
  }

  #submit(request: Unnumbered, timeoutMs: number | null, signal: AbortSignal | undefined): Promise<unknown[][]> {
    if (this.#isStopped) return Promise.reject(new Error("the server is stopping"));
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    if (this.#waiting.length >= WAITING_READS_MAX) {
      return Promise.reject(new AppError(503, `Too many long reads are waiting (at most ${WAITING_READS_MAX})`));
    }
    return new Promise((resolve, reject) => {
      const job: Job = { request, timeoutMs, signal, resolve, reject, unwatch: () => {} };
      const process = this.#freeProcess();
      if (process !== null) return this.#start(process, job);
      this.#waiting.push(job);
      this.#watch(job, (reason) => {
        this.#waiting = this.#waiting.filter((other) => other !== job);
        job.reject(reason ?? new AppError(503, "Too many long reads are under way"));
      });
    });
  }

  #freeProcess(): QueryProcess | null {
    for (const process of this.#processes) if (process.job === null && process.verdict === undefined) return process;
    return this.#processes.size < this.#processesMax ? this.#spawn() : null;
  }

  #start(process: QueryProcess, job: Job): void {
    process.cancelIdle();
    process.job = job;
    if (job.request.op === "query") process.paths.add(job.request.path);
    this.#watch(job, (reason) => {
      this.#kill(
        process,
        reason ?? new AppError(408, `The query took longer than ${job.timeoutMs} ms and was stopped`),
      );
    });
    this.#lastId += 1;
    process.jobId = this.#lastId;
    process.child.send({ id: process.jobId, ...job.request });
  }

  /** Calls `stop` once when the job's time is over (without a reason) or its signal fires (with it). */
  #watch(job: Job, stop: (reason: unknown) => void): void {
    job.unwatch();
    const { timeoutMs, signal } = job;
    const onAbort = () => {
      job.unwatch();
      stop(signal?.reason);
    };
    const cancelTimer =
      timeoutMs === null
        ? () => {}
        : this.#clock.after(timeoutMs, () => {
            job.unwatch();
            stop(undefined);
          });
    signal?.addEventListener("abort", onAbort, { once: true });
    job.unwatch = () => {
      cancelTimer();
      signal?.removeEventListener("abort", onAbort);
    };
  }

  #spawn(): QueryProcess {
    const limits: ProcessLimits = {
      connectionsMax: READ_CONNECTIONS_MAX,
      resultBytesMax: READ_RESULT_BYTES_MAX,
      lockTimeoutMs: QUERY_LOCK_TIMEOUT_MS,
      highlight: {
        hitsMax: HIGHLIGHT_HITS_MAX,
        bytesMax: HIGHLIGHT_BYTES_MAX,
        pieceLength: HIGHLIGHT_PIECE_LENGTH,
        phraseLength: HIGHLIGHT_PHRASE_LENGTH,
      },
    };
    const highlighter = `(${createHighlighter.toString()})(limits.highlight, (${createWordMarks.toString()})(sqlite, limits.highlight))`;
    const source = `{ const sqlite = require("node:sqlite"), limits = ${JSON.stringify(limits)};
      (${serveQueries.toString()})(sqlite, process, limits, ${highlighter}); }`;
    const child = Bun.spawn([process.execPath, "-e", source], {
      // Not the caller's directory: a bunfig.toml or .env there is none of this process's business.
      cwd: process.platform === "win32" ? (process.env["SystemRoot"] ?? "C:\\") : "/",
      env: processEnvironment(),
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "advanced",
      ipc: (response: ProcessResponse) => this.#finish(entry, response),
    });
    child.unref();
    const entry: QueryProcess = {
      child,
      job: null,
      jobId: 0,
      verdict: undefined,
      paths: new Set(),
      cancelIdle: () => {},
    };
    this.#processes.add(entry);
    void child.exited.then(() => this.#bury(entry));
    return entry;
  }

  #finish(process: QueryProcess, response: ProcessResponse): void {
    const { job } = process;
    // A process that is being killed may still have answered: its time was over all the same.
    if (job === null || response.id !== process.jobId || process.verdict !== undefined) return;
    job.unwatch();
    process.job = null;
    if (response.ok) job.resolve(response.rows);
    else job.reject(new (response.isTooLarge ? ResultTooLarge : QueryError)(response.message, response.errorCode));
    this.#next(process);
  }

  #next(process: QueryProcess): void {
    const job = this.#waiting.shift();
    if (job !== undefined) {
      this.#start(process, job);
      return;
    }
    process.cancelIdle();
    process.cancelIdle = this.#clock.after(READ_PROCESS_IDLE_MS, () => this.#kill(process, new Error("idle")));
  }

  #kill(process: QueryProcess, verdict: unknown): void {
    process.verdict ??= verdict;
    process.cancelIdle();
    process.child.kill("SIGKILL");
  }

  /** The process is gone, and with it its statement: only now is its job told. */
  #bury(process: QueryProcess): void {
    this.#processes.delete(process);
    process.cancelIdle();
    const { job } = process;
    process.job = null;
    job?.unwatch();
    job?.reject(process.verdict ?? new Error(`a query process ended by itself (${describeExit(process.child)})`));
    if (this.#isStopped || this.#waiting.length === 0) return;
    const next = this.#freeProcess();
    if (next !== null) this.#next(next);
  }
}

function describeExit(child: Bun.Subprocess): string {
  return child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`;
}

/** The secrets in the server's environment stay there. */
function processEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {
    // Makes a compiled executable behave as Bun itself.
    BUN_BE_BUN: "1",
    // The process dies with the server, however that ends.
    BUN_FEATURE_FLAG_NO_ORPHANS: "1",
  };
  for (const name of ["TMPDIR", "TEMP", "TMP", "SystemRoot"]) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

/** node:sqlite binds every number as a real; whole ones are integers to bun:sqlite, and so they are here. */
function asBinding(value: SqlValue): string | number | bigint | null | Uint8Array {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0)) return BigInt(value);
  return value;
}
