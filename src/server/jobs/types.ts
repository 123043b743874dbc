import type { Millis } from "../../kernel/clock.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { Logger } from "../../kernel/logger.ts";

/** Answer of another server to a try, for administrators. */
interface JobAnswer {
  status: number;
  /** Media type without parameters; null: the answer named none. */
  contentType: string | null;
  /** Beginning of the body, with U+FFFD in place of bytes that are not UTF-8. */
  body: string;
  /** Whether there was more of the body. */
  isCut: boolean;
}

/** One try of a job. */
export interface JobRun {
  readonly id: string;
  readonly data: JsonValue;
  /** Counts from 1. A try during which the process ended counts. */
  readonly attempt: number;
  /** The error of the latest failed try; null: none has failed. In a first try: somebody has retried the job. */
  readonly lastError: string | null;
  /** Aborted at the timeout, when the job is cancelled, and when the server stops. */
  readonly signal: AbortSignal;
  /** Logger that adds the job's name and id to each entry. */
  readonly log: Logger;
  /** The `secret` of the job; null if it has none. */
  readonly secret: string | null;
  /** Replaces the data, for a later try that continues where this one ends. Durable when it resolves. */
  save(data: JsonValue): Promise<void>;
  /** Stores the answer with the job when the try has ended, in place of the answer to an earlier one. */
  answered(answer: JobAnswer): void;
}

export interface JobDefinition {
  /** Runs one try. The job is done when it returns or resolves, and has failed this try when it throws or rejects. */
  run(job: JobRun): unknown;
  /** Tries after the first one. */
  retries: number;
  /** Seconds that one try may take; null: no limit. Later effects of the try are ignored. */
  timeout: number | null;
  /** Jobs of this name that run at once. */
  concurrency: number;
  /**
   * Returns the delay after a failed try; null: the job has failed. `random` is for jitter. Default: doubles from 1 s to 1 h, with
   * jitter.
   */
  backoff?(failure: { attempt: number; createdAt: Millis; random: number }): Millis | null;
}

export interface EnqueueOptions {
  /** Seconds until the job may start. Default 0. */
  delay?: number | undefined;
  /** The time at which the job may start: a date, or ISO 8601. Not together with `delay`. */
  at?: Date | string | undefined;
  /** Dedupe key: a job of the same name with this key that waits or runs is used instead of a new one. */
  key?: string | undefined;
  /**
   * Runs jobs of the same name and group one at a time, in the order in which they were enqueued. A failing one blocks the later
   * ones of its group until its tries are used up.
   */
  group?: string | undefined;
  /** Idempotency key: nothing happens if there is a job with this id. Default: a new id. */
  id?: string | undefined;
  /** A text for `run` that is encrypted at rest, and that no answer contains. */
  secret?: string | undefined;
}

/** A job that was accepted elsewhere, with its data as JSON of any size. */
export interface PassedJob {
  id: string;
  name: string;
  group: string | null;
  key: string | null;
  /** Time at which the job is due; null: at once. */
  dueAt: Millis | null;
  /** Data as JSON. */
  data: string;
  secret: Uint8Array | null;
}

export interface NameCounts {
  name: string;
  waiting: number;
  running: number;
  done: number;
  failed: number;
  /** Failed jobs, including those that are no longer kept. */
  failedTotal: number;
}

/** The durable queue. Each accepted job runs at least once, until it is done or its tries are used up. */
export interface Queue {
  /** Defines how jobs of this name run. Jobs of other names wait. Errors: the name is defined already. */
  define(name: string, definition: JobDefinition): void;
  /**
   * Adds a job, and resolves with its id when it is on disk. Jobs of a name that is not defined are accepted, and wait.
   * Errors: 400 for an option, 413 for data over DATA_MAX_BYTES, 503 too many waiting to be written, 507 no space left.
   */
  enqueue(name: string, data: JsonValue, options?: EnqueueOptions): Promise<string>;
  /**
   * Prepares a job for an outbox, which keeps it until it is passed on (`JobsArea.pass`). Errors: 400 for an option, 413 for data.
   */
  prepare(name: string, data: JsonValue, options?: EnqueueOptions): PassedJob;
  /** Counts the jobs of a name that wait or run. */
  unfinished(name: string): number;
}

/** Thrown by `run` to prevent further tries: the job has failed. */
export class FinalFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FinalFailure";
  }
}

/** The states of a row. A job that waits behind another one of its group is not in the index of due jobs. */
export const WAITING = 0;
export const BEHIND = 1;
export const RUNNING = 2;
export const DONE = 3;
export const FAILED = 4;

/** The states that callers see. */
export type JobState = "waiting" | "running" | "done" | "failed";

const ROW_STATES: Readonly<Record<JobState, readonly number[]>> = {
  waiting: [WAITING, BEHIND],
  running: [RUNNING],
  done: [DONE],
  failed: [FAILED],
};
/** Returns the states of rows that callers see as `state`; null: all. */
export const rowStates = (state: JobState | null): readonly number[] =>
  state === null ? Object.values(ROW_STATES).flat() : ROW_STATES[state];

const NAMES: readonly JobState[] = ["waiting", "waiting", "running", "done", "failed"];
export const stateName = (state: number): JobState => NAMES[state] ?? "waiting";
