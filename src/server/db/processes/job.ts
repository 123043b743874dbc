export type Blocks = readonly Uint8Array<ArrayBuffer>[];

/** What a pool runs in one of its processes. */
export interface Job {
  /** For the program; it is copied by a structured clone. */
  request: unknown;
  /** Bytes sent before the request, a block at a time. A function is called once the job has its process; it rejects the job. */
  attached?: Blocks | (() => Promise<Blocks>);
  /** Callers of one name share their turns. */
  caller: string;
  /** How many of the queue's places it takes. */
  places: number;
  /** How long it may wait for a process, and then run. */
  waitMs: number;
  runMs: number;
  /** Each ends the job, waiting or running, which rejects with `reason`. */
  signals: readonly { signal: AbortSignal; reason: () => unknown }[];
  refusals: Refusals;
  /** The error for what the program's `failureOf` gave. */
  failed(failure: unknown): Error;
  /** What its process keeps open for it, until `forget`. */
  resource?: string;
  /** false: not yet. Asked again at `wake`. */
  mayStart?(): boolean;
  onStart?(): void;
  /** Takes in a part of the answer. What it throws ends the job. */
  take?(part: unknown): void;
  /** Drops the parts taken in, as the job begins again on another process. Absent: a job whose process ends by itself fails. */
  restart?(): void;
  /** Resolves when the server has room for a large answer. Absent: it always has. */
  reserve?(sizeBytes: number): Promise<void>;
}

/** The errors of a job that does not run to its end. */
export interface Refusals {
  queueFull(): Error;
  waitedTooLong(): Error;
  ranTooLong(): Error;
  /** Its process ended by itself: `exit` says how. */
  ended(exit: string): Error;
}
