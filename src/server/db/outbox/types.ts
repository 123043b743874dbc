/** The caller that caused a change; null: a caller without credentials. */
export type Actor = { user: string } | { key: string } | { server: true } | null;

export const SERVER_ACTOR: Actor = { server: true };

/** The chain of trigger runs that led to a write. */
export interface Origin {
  /** Length of the chain; 0: no trigger. */
  readonly depth: number;
  /** The id of what was triggered first; null: nothing was. */
  readonly root: string | null;
}

export const NO_ORIGIN: Origin = { depth: 0, root: null };

export interface Cause extends Origin {
  by: Actor;
}

/** Work that a write triggers: one job for each of `names`, with the same data. */
export interface OutboxRow {
  /** Idempotency key: the jobs' ids are derived from it, so that a row that is enqueued twice makes each job once. */
  id: string;
  names: readonly string[];
  /** Jobs of one name and group run in the order of their rows; null: in any order. */
  group: string | null;
  /** Dedupe key: while a job of the name with this key waits or runs, no second one is enqueued; null: no key. */
  key: string | null;
  /** Milliseconds since 1970; null: at once. */
  dueAt: number | null;
  /** Payload as JSON. */
  data: string;
  /** Secret part of the payload, encrypted by the queue; null: none. */
  secret: Uint8Array | null;
}

export interface StoredOutboxRow extends OutboxRow {
  /** Position in the order of commits. */
  seq: number;
}

/** Returns the id of the job that a row makes for the name at `index`. */
export const jobId = (id: string, index: number): string => (index === 0 ? id : `${id}.${index}`);
