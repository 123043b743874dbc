export type Blocks = readonly Uint8Array<ArrayBuffer>[];

/** A job for one process of a pool. */
export interface Job {
  /** Input of the program; copied by a structured clone. */
  request: unknown;
  /** Bytes sent before the request, a block at a time. A function is called once the job has its process; it rejects the job. */
  attached?: Blocks | (() => Promise<Blocks>);
  /** Name of the caller; jobs of the same name share turns. */
  caller: string;
  /** Places that the job takes in the queue. */
  places: number;
  /** Time limit of the wait for a process, and then of the run. */
  waitMs: number;
  runMs: number;
  /** Signals that end the job, waiting or running; it rejects with `reason`. */
  signals: readonly { signal: AbortSignal; reason: () => unknown }[];
  refusals: Refusals;
  /** Returns the error for the result of the program's `failureOf`. */
  failed(failure: unknown): Error;
  /** Name of the resource that its process keeps open for it, until `forget`. */
  resource?: string;
  /** Returns false while the job may not start yet. Asked again at `wake`. */
  mayStart?(): boolean;
  onStart?(): void;
  /** Receives a part of the answer. An error that it throws ends the job. */
  take?(part: unknown): void;
  /** Answers a question of the program. If it rejects, the job ends with that error. Absent: the program asks nothing. */
  answer?(question: unknown): Promise<unknown>;
  /** Drops the received parts, as the job is retried on another process. Absent: a job whose process ends by itself fails. */
  restart?(): void;
  /** Resolves when the server has room for a large answer. Absent: it always has. */
  reserve?(sizeBytes: number): Promise<void>;
}

/** The errors of a job that does not run to its end. */
export interface Refusals {
  queueFull(): Error;
  waitedTooLong(): Error;
  ranTooLong(): Error;
  /** Returns the error for a process that ended by itself: `exit` says how. */
  ended(exit: string): Error;
}
