import { type AnswerGate, behind } from "../../../kernel/answer-gate.ts";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { parseInSlices } from "../../../kernel/json/slices.ts";
import { UNDER_WAY_MAX_MS } from "../../../kernel/limits.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { type Foreground, Pacing } from "../../../kernel/observing/foreground.ts";
import { nextTurn, Scheduler } from "../../../kernel/time/scheduler.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import type { Transaction } from "../../db/index.ts";
import { JOBS_PER_WRITE_MAX, SLEEP_MAX_MS, SLICED_DATA_MIN_LENGTH, STEP_PAUSE_MS, WRITE_RETRY_MS } from "../limits.ts";
import type { JobDefinition } from "../types.ts";
import type { CountDeltas } from "./counts.ts";
import { dataText, type JobSealing } from "./entry.ts";
import { backoffOf, interruptedOutcome, outcomeOf } from "./outcomes.ts";
import type { ClaimedJob, JobStore, Outcome } from "./store.ts";
import { jobLogger, startTry, type Try, type TryResult } from "./trying.ts";

interface Name {
  readonly name: string;
  readonly definition: JobDefinition;
  running: number;
  /** Time before which no job of the name is due. */
  dueAt: Millis;
}

interface Running {
  readonly job: ClaimedJob;
  readonly name: Name;
  readonly tried: Try;
  /** JSON; null: no other server has responded. */
  answer: string | null;
}

/** The outcome of a try, with the answer of another server to keep with the job. */
interface Ending {
  readonly outcome: Outcome;
  readonly answer: string | null;
}

export interface DispatcherDeps {
  store: () => JobStore;
  sealing: JobSealing;
  foreground: Foreground;
  gate?: AnswerGate | null;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/**
 * Starts due jobs and records how their tries end. A step is one transaction: it writes the ends of tries, and claims due jobs by
 * marking them as running. Their runs start when it is committed. It is not synced: a SIGKILL does not undo a commit, and jobs
 * whose record a power failure undoes run again. Between steps there is one timer, for the earliest due job, or for a pause that
 * requests need.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #names = new Map<string, Name>();
  readonly #running = new Map<number, Running>();
  /** Tries that were ended while their `run` continues, by the job's number. */
  readonly #outliving = new Map<number, Try>();
  #endings: Ending[] = [];
  /** Cancelled jobs by number, until the cancellation is on disk. */
  readonly #whenRecorded = new Map<number, PromiseWithResolvers<void>>();
  #state: "new" | "started" | "stopping" = "new";
  #isStepQueued = false;
  /** Whether steps pause after a failed write. */
  #isPaused = false;
  #isFailing = false;
  #cancelTimer = () => {};
  /** Resolves when every step so far has ended. */
  #steps: Promise<void> = Promise.resolve();
  readonly #pacing: Pacing;
  readonly #dataOf = createDataParser();

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#pacing = new Pacing(deps.foreground, STEP_PAUSE_MS);
  }

  define(name: string, definition: JobDefinition): void {
    if (this.#names.has(name)) throw new Error(`the job "${name}" is defined already`);
    this.#names.set(name, { name, definition, running: 0, dueAt: 0 });
    this.#wake();
  }

  /** Notes that a job of this name is due at this time. */
  readonly onDue = (name: string, dueAt: Millis): void => {
    const known = this.#names.get(name);
    if (known === undefined || known.dueAt <= dueAt) return;
    known.dueAt = dueAt;
    this.#wake();
  };

  /**
   * Starts the dispatcher once jobs.db is open: recovers jobs that were running when an earlier process ended, and starts due ones.
   * Retries while the file cannot be written. Never rejects.
   */
  async start(): Promise<void> {
    try {
      await this.#recover();
    } catch (cause) {
      this.#failed(cause);
      if (this.#state === "new") this.#cancelTimer = this.#deps.clock.after(WRITE_RETRY_MS, () => void this.start());
      return;
    }
    if (this.#state !== "new") return;
    this.#state = "started";
    this.#wake();
  }

  /** The defined names. */
  get names(): string[] {
    return [...this.#names.keys()];
  }

  /** Cancels a running job, which counts as failed. Resolves when that is on disk; false: it does not run. Errors: 507, 503. */
  async cancel(seq: number): Promise<boolean> {
    // A job that has just been marked as running starts in the next turn.
    if (!this.#running.has(seq)) await nextTurn();
    const running = this.#running.get(seq);
    if (running === undefined) return false;
    // Another request may have cancelled it in this turn.
    const recorded = this.#whenRecorded.get(seq) ?? Promise.withResolvers<void>();
    this.#whenRecorded.set(seq, recorded);
    recorded.promise.catch(() => {});
    running.tried.end("cancelled");
    const { kind } = await running.tried.result;
    await recorded.promise;
    return kind === "cancelled";
  }

  /** Reports whether code of the job still runs: of a try under way, or of one that was ended and ignores its signal. */
  isUnderWay(seq: number): boolean {
    return this.#running.has(seq) || this.#outliving.has(seq);
  }

  /**
   * Starts no more jobs, aborts the signals of running ones, and gives them time to end. Jobs that do not end in time run again.
   */
  async stop(): Promise<void> {
    const wasStarted = this.#state === "started";
    this.#state = "stopping";
    this.#cancelTimer();
    if (!wasStarted) return;
    for (const { tried } of this.#running.values()) tried.end("stopped");
    const ended = Promise.all([...this.#running.values()].map(({ tried }) => tried.result));
    await endsWithin(ended, UNDER_WAY_MAX_MS, this.#deps.clock);
    for (const running of [...this.#running.values()]) this.#ended(running, { kind: "stopped" });
    await this.#steps;
    // Tries whose end cannot be written run again after the next start.
    if (this.#endings.length > 0) await this.#write([]).catch((cause: unknown) => this.#failed(cause));
  }

  async #recover(): Promise<void> {
    const { store, clock, ids, logger } = this.#deps;
    const found = await store().write((tx, deltas) => {
      const jobs = store().interrupted(tx);
      for (const job of jobs) {
        const definition = this.#names.get(job.name)?.definition ?? null;
        const now = clock.now();
        const outcome = interruptedOutcome(job, definition, {
          now,
          dueAt: now + backoffOf(job.attempt, randomOf(ids)),
        });
        store().record(tx, deltas, outcome, this.onDue);
      }
      return jobs.length;
    });
    if (found > 0) logger.warn("jobs: the server ended while jobs were running; they run again", { jobs: found });
  }

  /** Plans the next step: now if a job may be due or an outcome waits, otherwise when the earliest is due. */
  #wake(): void {
    if (this.#state === "new" || this.#isStepQueued || this.#isPaused) return;
    this.#cancelTimer();
    const isStopping = this.#state === "stopping";
    const earliest = isStopping ? Number.POSITIVE_INFINITY : this.#earliest();
    const delayMs = this.#endings.length > 0 ? 0 : earliest - this.#deps.clock.now();
    if (delayMs <= 0) this.#stepSoon();
    else if (delayMs < Number.POSITIVE_INFINITY) {
      this.#cancelTimer = this.#deps.clock.after(Math.min(delayMs, SLEEP_MAX_MS), () => this.#wake());
    }
  }

  #earliest(): Millis {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { running, definition, dueAt } of this.#names.values()) {
      if (running < definition.concurrency && dueAt < earliest) earliest = dueAt;
    }
    return earliest;
  }

  #stepSoon(): void {
    if (this.#state === "stopping" || this.#pacing.leftMs === 0) this.#step();
    else this.#cancelTimer = this.#pacing.after(() => this.#wake());
  }

  #step(): void {
    this.#isStepQueued = true;
    this.#pacing.step();
    const claimed: ClaimedJob[] = [];
    const written = this.#write(claimed).then(
      () => {
        this.#isFailing = false;
      },
      (cause: unknown) => this.#failed(cause),
    );
    // Drops the result, which would hold the results of all steps before.
    this.#steps = Promise.all([this.#steps, written]).then(() => {});
  }

  /** Writes the ends of tries, and adds started jobs to `claimed` unless the dispatcher is stopping. */
  async #write(claimed: ClaimedJob[]): Promise<void> {
    const { store } = this.#deps;
    let recorded: Ending[] = [];
    let committed: Promise<void> | null = null;
    try {
      // Callers that cancel a job wait for the disk.
      const isSynced = this.#whenRecorded.size > 0;
      await store()[isSynced ? "write" : "commit"]((tx, deltas) => {
        // The transaction commits at the end of this turn.
        committed = nextTurn().then(() => this.#committed(claimed));
        recorded = this.#takeEndings({ isSynced });
        for (const { outcome, answer } of recorded) {
          store().record(tx, deltas, outcome, this.onDue);
          if (answer !== null) store().keepAnswer(tx, outcome.job.seq, answer);
        }
        if (this.#state === "started") this.#claim(tx, deltas, claimed);
        return null;
      });
      this.#settleRecorded(recorded, (one) => one.resolve());
    } catch (cause) {
      this.#settleRecorded([...recorded, ...this.#endings], (one) => one.reject(cause));
      this.#endings = [...recorded, ...this.#endings];
      // Rolled-back claims are due as before.
      for (const name of this.#names.values()) name.dueAt = 0;
      if (committed === null) this.#isStepQueued = false;
      throw cause;
    } finally {
      await committed;
    }
  }

  /** Takes the ends of tries to write. A write without a sync leaves those of cancelled jobs to the next one. */
  #takeEndings({ isSynced }: { isSynced: boolean }): Ending[] {
    if (isSynced || this.#whenRecorded.size === 0) return this.#endings.splice(0);
    const isAwaited = ({ outcome }: Ending): boolean => this.#whenRecorded.has(outcome.job.seq);
    const taken = this.#endings.filter((ending) => !isAwaited(ending));
    this.#endings = this.#endings.filter(isAwaited);
    return taken;
  }

  #settleRecorded(endings: readonly Ending[], settle: (one: PromiseWithResolvers<void>) => void): void {
    if (this.#whenRecorded.size === 0) return;
    for (const { job } of endings.map(({ outcome }) => outcome)) {
      const one = this.#whenRecorded.get(job.seq);
      if (one !== undefined) settle(one);
      this.#whenRecorded.delete(job.seq);
    }
  }

  #claim(tx: Transaction, deltas: CountDeltas, claimed: ClaimedJob[]): void {
    const store = this.#deps.store();
    const now = this.#deps.clock.now();
    for (const entry of [...this.#names.values()]) {
      const { name, definition, running, dueAt } = entry;
      const free = Math.min(definition.concurrency - running, JOBS_PER_WRITE_MAX - claimed.length);
      if (free <= 0 || dueAt > now) continue;
      const jobs = store.claim(tx, deltas, { name, now, limit: free });
      claimed.push(...jobs);
      // Moves the name to the end for the next step: one name may fill a step, and must not fill all of them.
      this.#names.delete(name);
      this.#names.set(name, entry);
      entry.running += jobs.length;
      entry.dueAt = store.nextDue(tx, name) ?? Number.POSITIVE_INFINITY;
    }
  }

  #committed(claimed: readonly ClaimedJob[]): void {
    const [first] = claimed;
    let isCommitted = false;
    try {
      isCommitted = first !== undefined && this.#deps.store().isClaimed(first);
    } catch {
      // The file has failed: its error was reported, and nothing runs any more.
    }
    for (const job of claimed) {
      const name = this.#names.get(job.name);
      if (name === undefined) continue;
      if (isCommitted && this.#state === "started") this.#run(name, job);
      else {
        name.running -= 1;
        if (isCommitted) this.#endings.push({ outcome: { job, to: "release" }, answer: null });
      }
    }
    this.#isStepQueued = false;
    this.#wake();
  }

  /** Pauses the dispatcher: every further write would fail in the same way. */
  #failed(cause: unknown): void {
    const { logger, clock } = this.#deps;
    if (!this.#isFailing) logger.error("jobs: jobs.db cannot be written", { cause });
    this.#isFailing = true;
    if (this.#state !== "started") return;
    this.#isPaused = true;
    this.#cancelTimer();
    this.#cancelTimer = clock.after(WRITE_RETRY_MS, () => {
      this.#isPaused = false;
      this.#wake();
    });
  }

  #run(name: Name, job: ClaimedJob): void {
    const { store, sealing, clock, logger, gate = null } = this.#deps;
    const { id, seq, attempt } = job;
    const log = jobLogger(logger, job);
    const running: Running = {
      job,
      name,
      answer: null,
      tried: startTry(
        {
          timeout: name.definition.timeout,
          run: (given) => {
            const secret = job.secret === null ? null : sealing.unseal(id, job.secret);
            if (job.secret !== null && secret === null) throw new Error("it was encrypted with another secret");
            // What it does may tell of the job, and of everything before.
            return chain(behind(gate, this.#dataOf(job.data)), (data) => {
              given.signal.throwIfAborted();
              return name.definition.run(Object.assign(given, { secret, data }));
            });
          },
        },
        {
          id,
          attempt,
          log,
          secret: null,
          lastError: job.lastError,
          data: null,
          save: async (data) => {
            const text = dataText(data);
            await store().write((tx) => store().save(tx, seq, text));
          },
          answered: (answer) => {
            running.answer = JSON.stringify(answer);
          },
        },
        clock,
      ),
    };
    this.#running.set(seq, running);
    void running.tried.result.then((result) => this.#ended(running, result));
  }

  #ended(running: Running, result: TryResult): void {
    const { job, name } = running;
    if (!this.#running.delete(job.seq)) return;
    const { clock, ids, logger } = this.#deps;
    name.running -= 1;
    if (result.kind === "cancelled" || result.kind === "timeout") this.#watchOutliving(running);
    const outcome = outcomeOf(job, result, name.definition, { now: clock.now(), random: randomOf(ids) });
    if (outcome.to !== "done") reportFailure(logger, job, outcome, result);
    this.#endings.push({ outcome, answer: running.answer });
    this.#wake();
  }

  #watchOutliving({ job, tried }: Running): void {
    this.#outliving.set(job.seq, tried);
    void tried.ran.then(() => {
      if (this.#outliving.get(job.seq) === tried) this.#outliving.delete(job.seq);
    });
  }
}

const randomOf = (ids: Ids): number => Buffer.from(ids.secret(4), "base64url").readUInt32LE(0) / 2 ** 32;

function reportFailure(logger: Logger, job: ClaimedJob, outcome: Outcome, result: TryResult): void {
  const facts = { job: job.name, id: job.id, attempt: job.attempt };
  const cause = result.kind === "threw" ? { cause: result.cause } : { reason: result.kind };
  if (outcome.to === "failed") logger.error("jobs: a job failed", { ...facts, ...cause });
  else logger.warn("jobs: a try failed and is retried", { ...facts, ...cause });
}

/**
 * Creates a parser of job data. Large data, such as that of a trigger about a record of megabytes, is parsed over several turns of
 * the event loop.
 */
export function createDataParser(): (text: string) => MaybePromise<JsonValue> {
  const turns = new Scheduler();
  return (text) => {
    // Written as JSON by the queue.
    const parse = () => JSON.parse(text) as JsonValue;
    if (text.length < SLICED_DATA_MIN_LENGTH || !/^[[{]/.test(text)) return parse();
    // The slices refuse some values that no client may send, but that a config's code may have enqueued.
    return turns.run(parseInSlices(text)).catch(parse);
  };
}
