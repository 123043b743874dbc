import type { Clock } from "../../../kernel/clock.ts";
import { AppError, serverStopping } from "../../../kernel/errors.ts";
import { inPhase } from "../../../kernel/observing/request-trace.ts";
import { FairQueue } from "../../../kernel/time/fair-queue.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { describeExit, startChild } from "./child.ts";
import type { Blocks, Job } from "./job.ts";
import type { FromProcess, ToProcess } from "./protocol.ts";

export interface ProcessPoolOptions {
  clock: Clock;
  /** The module that the processes run, by its path under `src` without the ending: `d1/query-job`. */
  program: string;
  /** Argument of the module's `start`. */
  settings: unknown;
  processesMax: number;
  /** Places of the queue; a waiting job takes one or more of them. */
  placesMax: number;
  /** Idle time after which a process ends. */
  idleMs: number;
  /** `below`: the server gets the processor first; `same`: the server itself waits for the jobs. Default: below. */
  priority?: "below" | "same";
  /** Returns how many processes a caller may have at once where `free` of them have no work. Default: all. */
  shareOf?: (caller: string, free: number) => number;
}

/** A job in the pool. */
interface Entry {
  job: Job;
  caller: string;
  places: number;
  resolve: (answer: unknown) => void;
  reject: (cause: unknown) => void;
  /** Ends the timer and the signal listeners of the job. */
  unwatch: () => void;
  /** Whether the job has been retried already because its process ended by itself. */
  isRepeated: boolean;
}

interface PooledProcess {
  child: Bun.Subprocess;
  entry: Entry | null;
  /** The number with which `entry` was sent. */
  entryId: number;
  /** Set while the process is being killed: the job rejects with it once the process has ended. */
  verdict: unknown;
  resources: Set<string>;
  cancelIdle: () => void;
}

/**
 * Runs jobs in processes of their own, one job each at a time. A process can be killed where a thread cannot: a thread that is
 * terminated inside SQLite continues until its statement ends. Processes start on demand, end when idle, and end with the server.
 * [DB17] [DB20] [DB120]–[DB123]
 */
export class ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #waiting: FairQueue<Entry>;
  readonly #processes = new Set<PooledProcess>();
  /** Processes without work, the one used last at the end. */
  readonly #idle: PooledProcess[] = [];
  #lastId = 0;
  #isStopped = false;

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
    this.#waiting = new FairQueue(options.placesMax);
  }

  get running(): number {
    return this.#runningOf(() => true);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Runs a job and resolves to the answer of its process. Errors: those of `Job`; 503 when the pool stops or no process can be
   * started.
   */
  run(job: Job): Promise<unknown> {
    if (this.#isStopped) return Promise.reject(serverStopping());
    const fired = job.signals.find(({ signal }) => signal.aborted);
    if (fired !== undefined) return Promise.reject(fired.reason());
    return inPhase("database", () => this.#run(job));
  }

  #run(job: Job): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { caller, places } = job;
      const entry: Entry = { job, caller, places, resolve, reject, unwatch: () => {}, isRepeated: false };
      for (const refused of this.#waiting.add(entry)) {
        refused.unwatch();
        refused.reject(job.refusals.queueFull());
        if (refused === entry) return;
      }
      this.#watch(entry, job.waitMs, (reason) => {
        this.#waiting.remove(entry);
        reject(reason ?? job.refusals.waitedTooLong());
      });
      this.wake();
    });
  }

  /** Starts the jobs that may run now. Called by the pool itself, and when a condition of a job's `mayStart` has changed. */
  wake(): void {
    const { processesMax, shareOf } = this.#options;
    while (this.#waiting.size > 0 && !this.#isStopped) {
      if (this.#idle.length === 0 && this.#processes.size >= processesMax) return;
      const running = (caller: string): number => this.#runningOf((entry) => entry.caller === caller);
      const free = processesMax - this.running;
      const mayRun = ({ caller, job }: Entry): boolean =>
        (shareOf === undefined || running(caller) < shareOf(caller, free)) && job.mayStart?.() !== false;
      const entry = this.#waiting.take({ running, mayRun });
      if (entry === null) return;
      entry.unwatch();
      entry.job.onStart?.();
      // The process used last is warm, and the others can reach their idle timeout.
      const process = this.#idle.pop() ?? this.#spawn(entry);
      if (process !== null) this.#start(process, entry);
    }
  }

  /**
   * Runs a job that releases `resource` in each process that knows it. A busy one does so after its job and is not waited for.
   * Never rejects.
   */
  async forget(resource: string, job: Job): Promise<void> {
    const answers: Promise<unknown>[] = [];
    for (const process of this.#processes) {
      if (!process.resources.delete(resource) || process.verdict !== undefined) continue;
      if (process.entry !== null) {
        this.#send(process, { kind: "job", id: this.#nextId(), request: job.request });
        continue;
      }
      this.#takeIdle(process);
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const { caller, places } = job;
      this.#start(process, { job, caller, places, resolve, reject, unwatch: () => {}, isRepeated: true });
      answers.push(promise);
    }
    await Promise.allSettled(answers);
  }

  /** Stops the pool. Jobs under way have `graceMs` to end. */
  async stop({ graceMs }: { graceMs: number } = { graceMs: 0 }): Promise<void> {
    this.#isStopped = true;
    for (const entry of this.#waiting.drain()) {
      entry.unwatch();
      entry.reject(serverStopping());
    }
    const kill = (process: PooledProcess): void => this.#kill(process, serverStopping());
    const ends = [...this.#processes].map(async (process) => {
      if (process.entry === null || graceMs === 0) kill(process);
      const cancel = this.#options.clock.after(graceMs, () => kill(process));
      await process.child.exited;
      cancel();
    });
    await Promise.all(ends);
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  #runningOf(isCounted: (entry: Entry) => boolean): number {
    let count = 0;
    for (const { entry } of this.#processes) if (entry !== null && isCounted(entry)) count += 1;
    return count;
  }

  #takeIdle(process: PooledProcess): void {
    const place = this.#idle.indexOf(process);
    if (place >= 0) this.#idle.splice(place, 1);
  }

  #start(process: PooledProcess, entry: Entry): void {
    const { job } = entry;
    process.cancelIdle();
    process.entry = entry;
    process.entryId = this.#nextId();
    // Keeps an embedding program alive until its jobs have ended.
    process.child.ref();
    if (job.resource !== undefined) process.resources.add(job.resource);
    if (typeof job.attached === "function") void this.#fetchAttached(process, entry, job.attached);
    else this.#begin(process, entry, job.attached);
  }

  /** Loads the attached bytes while the job already holds its process, so that no more jobs hold bytes than there are processes. */
  async #fetchAttached(process: PooledProcess, entry: Entry, load: () => Promise<Blocks>): Promise<void> {
    const { job } = entry;
    this.#watch(entry, job.waitMs, (reason) => this.#kill(process, reason ?? job.refusals.waitedTooLong()));
    const isOver = (): boolean => process.entry !== entry || process.verdict !== undefined;
    try {
      const blocks = await load();
      if (!isOver()) this.#begin(process, entry, blocks);
    } catch (cause) {
      if (isOver()) return;
      this.#end(process, entry);
      entry.reject(cause);
      this.#rest(process);
    }
  }

  #begin(process: PooledProcess, entry: Entry, attached: Blocks | undefined): void {
    const { job } = entry;
    this.#watch(entry, job.runMs, (reason) => this.#kill(process, reason ?? job.refusals.ranTooLong()));
    const message: ToProcess = { kind: "job", id: process.entryId, request: job.request };
    if (attached === undefined) this.#send(process, message);
    else void this.#sendAttached(process, attached, message);
  }

  /** Sends one block in each turn of the event loop, as a message is copied when it is sent. */
  async #sendAttached(process: PooledProcess, blocks: Blocks, job: ToProcess) {
    for (const bytes of blocks) {
      if (process.verdict !== undefined || !this.#processes.has(process)) return;
      this.#send(process, { kind: "bytes", bytes });
      await nextTurn();
    }
    if (process.verdict === undefined && this.#processes.has(process)) this.#send(process, job);
  }

  /** Sends a message. A process that takes none is about to end, and its job with it. */
  #send(process: PooledProcess, message: ToProcess): void {
    try {
      process.child.send(message);
    } catch {
      process.child.kill("SIGKILL");
    }
  }

  /** Calls `stop` once, when the time is over (without a reason) or one of the signals fires (with its reason). */
  #watch(entry: Entry, timeMs: number, stop: (reason: unknown) => void): void {
    entry.unwatch();
    const endings: (() => void)[] = [];
    entry.unwatch = () => {
      for (const end of endings) end();
    };
    const end = (reason: unknown): void => {
      entry.unwatch();
      stop(reason);
    };
    endings.push(this.#options.clock.after(timeMs, () => end(undefined)));
    for (const { signal, reason } of entry.job.signals) {
      const onAbort = () => end(reason());
      signal.addEventListener("abort", onAbort, { once: true });
      endings.push(() => signal.removeEventListener("abort", onAbort));
    }
  }

  /** Starts a process; null: the system has none left, and the job was rejected. */
  #spawn(entry: Entry): PooledProcess | null {
    const { program, settings, priority = "below" } = this.#options;
    let child: Bun.Subprocess;
    try {
      child = startChild({ program, settings, priority, onMessage: (message) => this.#receive(process, message) });
    } catch (cause) {
      entry.reject(new AppError(503, "No process could be started for the request; it may be sent again", { cause }));
      return null;
    }
    const process: PooledProcess = {
      child,
      entry: null,
      entryId: 0,
      verdict: undefined,
      resources: new Set(),
      cancelIdle: () => {},
    };
    this.#processes.add(process);
    void child.exited.then(() => this.#remove(process));
    return process;
  }

  #receive(process: PooledProcess, message: FromProcess): void {
    const { entry } = process;
    // A process that is being killed may still have answered, after its time limit.
    if (entry === null || message.id !== process.entryId || process.verdict !== undefined) return;
    switch (message.kind) {
      case "part":
        this.#take(process, entry, message.part);
        return;
      case "room":
        this.#reserve(process, entry, message.sizeBytes);
        return;
      case "ask":
        void this.#tell(process, entry, message.question);
        return;
      case "done":
        this.#end(process, entry);
        entry.resolve(message.answer);
        break;
      case "failed":
        this.#end(process, entry);
        entry.reject(entry.job.failed(message.failure));
        break;
    }
    this.#rest(process);
  }

  /** Receives a part. If that throws, the job ends with the error. */
  #take(process: PooledProcess, { job }: Entry, part: unknown): void {
    try {
      job.take?.(part);
    } catch (cause) {
      this.#kill(process, cause);
    }
  }

  #reserve(process: PooledProcess, entry: Entry, sizeBytes: number): void {
    const id = process.entryId;
    const ready = entry.job.reserve?.(sizeBytes) ?? Promise.resolve();
    void ready.then(() => {
      if (process.entry === entry && process.verdict === undefined) this.#send(process, { kind: "room", id });
    });
  }

  async #tell(process: PooledProcess, entry: Entry, question: unknown): Promise<void> {
    const id = process.entryId;
    const isOver = (): boolean => process.entry !== entry || process.verdict !== undefined;
    try {
      const answer = await entry.job.answer?.(question);
      if (!isOver()) this.#send(process, { kind: "told", id, answer });
    } catch (cause) {
      if (!isOver()) this.#kill(process, cause);
    }
  }

  #end(process: PooledProcess, entry: Entry): void {
    entry.unwatch();
    process.entry = null;
    process.child.unref();
  }

  /** Makes a process idle: it takes the next job, or ends after the idle time. */
  #rest(process: PooledProcess): void {
    if (this.#isStopped) {
      this.#kill(process, serverStopping());
      return;
    }
    this.#idle.push(process);
    process.cancelIdle = this.#options.clock.after(this.#options.idleMs, () => this.#kill(process, serverStopping()));
    this.wake();
  }

  #kill(process: PooledProcess, verdict: unknown): void {
    process.verdict ??= verdict;
    process.cancelIdle();
    this.#takeIdle(process);
    process.child.kill("SIGKILL");
  }

  /** Removes an ended process. Its statement has ended with it, so only now its job rejects, or is retried. */
  #remove(process: PooledProcess): void {
    this.#processes.delete(process);
    this.#takeIdle(process);
    process.cancelIdle();
    const { entry } = process;
    if (entry !== null) {
      this.#end(process, entry);
      this.#settle(entry, process);
    }
    this.wake();
  }

  /** Rejects the job of an ended process, or retries a repeatable one once if something else killed the process. [DB123] */
  #settle(entry: Entry, { verdict, child }: PooledProcess): void {
    const { job } = entry;
    if (verdict !== undefined || this.#isStopped) {
      entry.reject(verdict ?? serverStopping());
      return;
    }
    if (job.restart === undefined || entry.isRepeated) {
      entry.reject(job.refusals.ended(describeExit(child)));
      return;
    }
    entry.isRepeated = true;
    job.restart();
    const fresh = this.#spawn(entry);
    if (fresh !== null) this.#start(fresh, entry);
  }
}
