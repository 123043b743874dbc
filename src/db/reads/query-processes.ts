import type { Clock } from "../../kernel/clock.ts";
import { AppError, clientGone } from "../../kernel/errors.ts";
import {
  CHECKPOINT_TIMEOUT_MS,
  FORGET_TIMEOUT_MS,
  INDEX_SLICE_MS,
  INDEX_TIMEOUT_MS,
  LARGE_PAGE_BYTES,
  READ_PLACE_BYTES,
  READ_PROCESS_IDLE_MS,
  WAITING_READS_MAX,
} from "../limits.ts";
import { FairQueue } from "../processes/fair-queue.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import type { ReadCaller, ReadResult, SqlValue } from "../types.ts";
import { PENDING_TEXTS } from "../writer/pending-texts.ts";
import { PagePlaces, shareOf } from "./page-places.ts";
import { describeExit, spawnQueryChild } from "./query-child.ts";
import type { PageBounds, ProcessRequest, ProcessResponse, QueryMessage } from "./query-protocol.ts";
import { bytesOf } from "./query-values.ts";

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

export interface QueryRequest<R> extends Omit<QueryMessage, "id" | "op" | "params" | "page"> {
  params: readonly SqlValue[];
  page: PageBounds | null;
  timeoutMs: number;
  caller: ReadCaller;
  signal: AbortSignal | undefined;
  /** Called for each row as it arrives, so that a large result is decoded over several turns of the event loop. */
  decode: (values: unknown[]) => R;
}

type Unnumbered = ProcessRequest extends infer R ? (R extends ProcessRequest ? Omit<R, "id"> : never) : never;
type Done = Extract<ProcessResponse, { kind: "done" }>;

interface Job {
  request: Unnumbered;
  caller: string;
  places: number;
  timeoutMs: number;
  /** It takes a place among the pages that are read or being sent. */
  isPage: boolean;
  /** Gives that place back; does nothing before the job starts, or a second time. */
  endPage: () => void;
  keepUntilSent: ReadCaller["keepUntilSent"];
  /** Each with the error that the caller hears when it fires. */
  signals: readonly { signal: AbortSignal; reason: () => unknown }[];
  /** Takes in rows as they arrive. */
  take: (rows: unknown[][]) => void;
  /** Forgets the rows taken in: the job begins again. */
  restart: () => void;
  resolve: (done: Done) => void;
  reject: (error: unknown) => void;
  /** Ends what watches over the job: its timer, its signals. */
  unwatch: () => void;
  /** Its process ended by itself once already. */
  isRetried: boolean;
}

const UNSTARTED = { unwatch: () => {}, endPage: () => {} };

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
 * needed, end when they are idle, and die with the server. [DB16]–[DB20], [DB120]–[DB125]
 */
export class QueryProcesses {
  readonly #clock: Clock;
  readonly #processesMax: number;
  readonly #processes = new Set<QueryProcess>();
  readonly #waiting = new FairQueue<Job>(WAITING_READS_MAX);
  readonly #pages = new PagePlaces();
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
    return this.#waiting.size;
  }

  async query<R>(request: QueryRequest<R>): Promise<ReadResult<R>> {
    const { timeoutMs, caller, signal, params, decode, ...rest } = request;
    let rows: R[] = [];
    const { bytes, isCut } = await this.#submit({
      request: { ...rest, op: "query", params },
      caller: caller.callerName,
      isPage: rest.page !== null,
      keepUntilSent: caller.keepUntilSent?.bind(caller),
      places: 1 + Math.floor(bytesOf(params) / READ_PLACE_BYTES),
      timeoutMs,
      signals: [
        ...(signal === undefined ? [] : [{ signal, reason: () => signal.reason }]),
        ...(caller.signal === undefined ? [] : [{ signal: caller.signal, reason: clientGone }]),
      ],
      take: (part) => {
        for (const values of part) rows.push(decode(values));
      },
      restart: () => {
        rows = [];
      },
    });
    return { rows, bytes, isCut };
  }

  async checkpoint(path: string): Promise<void> {
    await this.#submit(this.#fileJob({ op: "checkpoint", path }, CHECKPOINT_TIMEOUT_MS));
  }

  /** Moves the whole WAL, starts it over and cuts it back to `walBytesLimit`. Nobody else may write to `path` meanwhile. */
  async restartWal(path: string, walBytesLimit: number): Promise<void> {
    await this.#submit(this.#fileJob({ op: "restart", path, walBytesLimit }, CHECKPOINT_TIMEOUT_MS));
  }

  /** Starts a process where there is none. */
  async ready(): Promise<void> {
    await this.#submit(this.#fileJob({ op: "ready", path: "" }, INDEX_TIMEOUT_MS));
  }

  /** Some texts that wait in `path`; false: none is left. Nobody else may write to it meanwhile. */
  async indexTexts(path: string, walBytesLimit: number): Promise<boolean> {
    const request = { op: "index" as const, path, pending: PENDING_TEXTS, sliceMs: INDEX_SLICE_MS, walBytesLimit };
    const { rows } = await this.#submit(this.#fileJob(request, INDEX_TIMEOUT_MS));
    return rows[0]?.[0] === true;
  }

  /** Has the processes close `path`. One that is busy does so after its statement and is not waited for. */
  async forget(path: string): Promise<void> {
    const answers: Promise<unknown>[] = [];
    for (const process of this.#processes) {
      if (!process.paths.delete(path) || process.verdict !== undefined) continue;
      if (process.job !== null) {
        this.#lastId += 1;
        this.#send(process, { id: this.#lastId, op: "forget", path });
        continue;
      }
      const job = this.#fileJob({ op: "forget", path }, FORGET_TIMEOUT_MS);
      answers.push(
        new Promise((resolve, reject) => {
          this.#start(process, { ...job, ...UNSTARTED, resolve, reject, isRetried: true });
        }).catch(() => undefined),
      );
    }
    await Promise.all(answers);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const stopped = new Error("the server is stopping");
    for (const job of this.#waiting.drain()) {
      job.unwatch();
      job.reject(stopped);
    }
    const exits = [...this.#processes].map((process) => {
      this.#kill(process, stopped);
      return process.child.exited;
    });
    await Promise.all(exits);
  }

  #fileJob(request: Unnumbered, timeoutMs: number) {
    const caller = SERVER_CALLER.callerName;
    const page = { isPage: false, keepUntilSent: undefined };
    return { request, caller, places: 1, timeoutMs, ...page, signals: [], take: () => {}, restart: () => {} };
  }

  #submit(given: Omit<Job, "resolve" | "reject" | "isRetried" | keyof typeof UNSTARTED>): Promise<Done> {
    if (this.#isStopped) return Promise.reject(new Error("the server is stopping"));
    const fired = given.signals.find(({ signal }) => signal.aborted);
    if (fired !== undefined) return Promise.reject(fired.reason());
    return new Promise((resolve, reject) => {
      const job: Job = { ...given, ...UNSTARTED, resolve, reject, isRetried: false };
      for (const refused of this.#waiting.add(job)) {
        refused.unwatch();
        refused.reject(new AppError(503, `Too many long reads are waiting (at most ${WAITING_READS_MAX})`));
        if (refused === job) return;
      }
      this.#watch(job, (reason) => {
        this.#waiting.remove(job);
        job.reject(reason ?? new AppError(503, "Too many long reads are under way"));
      });
      this.#dispatch();
    });
  }

  /** Starts what may run now. A caller gets at most half of the processes that are left, and one at least. [DB120] */
  #dispatch(): void {
    while (this.#waiting.size > 0 && !this.#isStopped) {
      const idle = [...this.#processes].find(({ job, verdict }) => job === null && verdict === undefined);
      if (idle === undefined && this.#processes.size >= this.#processesMax) return;
      const running = (caller: string): number => {
        let count = 0;
        for (const { job } of this.#processes) if (job?.caller === caller) count += 1;
        return count;
      };
      const share = shareOf(this.#processesMax - this.running);
      const mayRun = (job: Job) =>
        (job.caller === SERVER_CALLER.callerName || running(job.caller) < share) &&
        (!job.isPage || this.#pages.mayAdd(job.caller));
      const job = this.#waiting.take({ running, mayRun });
      if (job === null) return;
      if (job.isPage) job.endPage = this.#pages.add(job.caller, () => this.#dispatch());
      job.unwatch();
      const process = idle ?? this.#spawn(job);
      if (process !== null) this.#start(process, job);
    }
  }

  #start(process: QueryProcess, job: Job): void {
    process.cancelIdle();
    process.job = job;
    if (job.request.op === "query") process.paths.add(job.request.path);
    this.#watch(job, (reason) => {
      const subject = job.request.op === "query" ? "The query" : `The ${job.request.op}`;
      this.#kill(
        process,
        reason ?? new AppError(408, `${subject} took longer than ${job.timeoutMs} ms and was stopped`),
      );
    });
    this.#lastId += 1;
    process.jobId = this.#lastId;
    this.#send(process, { id: process.jobId, ...job.request });
  }

  /** A process that hears nothing any more is about to be buried, and its job with it. */
  #send(process: QueryProcess, message: ProcessRequest): void {
    try {
      process.child.send(message);
    } catch {
      process.child.kill("SIGKILL");
    }
  }

  /** Calls `stop` once when the job's time is over (without a reason) or one of its signals fires (with it). */
  #watch(job: Job, stop: (reason: unknown) => void): void {
    job.unwatch();
    const endings: (() => void)[] = [];
    job.unwatch = () => {
      for (const end of endings) end();
    };
    const end = (reason: unknown): void => {
      job.unwatch();
      stop(reason);
    };
    endings.push(this.#clock.after(job.timeoutMs, () => end(undefined)));
    for (const { signal, reason } of job.signals) {
      const onAbort = () => end(reason());
      signal.addEventListener("abort", onAbort, { once: true });
      endings.push(() => signal.removeEventListener("abort", onAbort));
    }
  }

  /** null: the system has no process left, and `job` has been told. */
  #spawn(job: Job): QueryProcess | null {
    let child: Bun.Subprocess;
    try {
      child = spawnQueryChild((response) => this.#receive(entry, response));
    } catch (cause) {
      this.#fail(job, new AppError(503, "No process can be started for a long read", { cause }));
      return null;
    }
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

  #receive(process: QueryProcess, response: ProcessResponse): void {
    const { job } = process;
    // A process that is being killed may still have answered: its time was over all the same.
    if (job === null || response.id !== process.jobId || process.verdict !== undefined) return;
    if (response.kind !== "failed" && !this.#take(process, job, response.rows)) return;
    if (response.kind === "part") return;
    job.unwatch();
    process.job = null;
    if (response.kind === "failed") this.#fail(job, new QueryError(response.message, response.errorCode));
    else this.#complete(job, response);
    this.#rest(process);
  }

  /** false: the rows cannot be decoded, and the job ends with the reason. */
  #take(process: QueryProcess, job: Job, rows: unknown[][]): boolean {
    try {
      job.take(rows);
      return true;
    } catch (cause) {
      this.#kill(process, cause);
      return false;
    }
  }

  /** A large page keeps its place until its answer has been sent: it is in memory so long. */
  #complete(job: Job, done: Done): void {
    job.resolve(done);
    if (done.bytes > LARGE_PAGE_BYTES && job.keepUntilSent !== undefined) job.keepUntilSent(job.endPage);
    else job.endPage();
  }

  #fail(job: Job, cause: unknown): void {
    job.reject(cause);
    job.endPage();
  }

  /** A process without a job takes the next one, or waits for one for a while. */
  #rest(process: QueryProcess): void {
    this.#dispatch();
    if (process.job !== null) return;
    process.cancelIdle();
    process.cancelIdle = this.#clock.after(READ_PROCESS_IDLE_MS, () => this.#kill(process, new Error("idle")));
  }

  #kill(process: QueryProcess, verdict: unknown): void {
    process.verdict ??= verdict;
    process.cancelIdle();
    process.child.kill("SIGKILL");
  }

  /** The process is gone, and with it its statement: only now is its job told, or begun again. */
  #bury(process: QueryProcess): void {
    this.#processes.delete(process);
    process.cancelIdle();
    const { job } = process;
    process.job = null;
    job?.unwatch();
    if (job !== null) this.#settle(job, process);
    this.#dispatch();
  }

  /** A process that something else has killed costs its job another start: none of them writes. [DB123] */
  #settle(job: Job, { verdict, child }: QueryProcess): void {
    if (verdict !== undefined || this.#isStopped) {
      this.#fail(job, verdict ?? new Error("the server is stopping"));
      return;
    }
    if (job.isRetried) {
      this.#fail(job, new Error(`a query process ended by itself (${describeExit(child)})`));
      return;
    }
    job.isRetried = true;
    job.restart();
    const fresh = this.#spawn(job);
    if (fresh !== null) this.#start(fresh, job);
  }
}
