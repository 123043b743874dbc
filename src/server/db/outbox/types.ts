/** Who caused a change; null: a caller without credentials. */
export type Actor = { user: string } | { key: string } | { server: true } | null;

export const SERVER_ACTOR: Actor = { server: true };

/** The runs of triggers that led to a write. */
export interface Origin {
  /** How many, one by another; 0: none. */
  readonly depth: number;
  /** The id of what was set off first; null: nothing was. */
  readonly root: string | null;
}

export const NO_ORIGIN: Origin = { depth: 0, root: null };

export interface Cause extends Origin {
  by: Actor;
}

/** Work that a write sets off: one job for each of `names`, with the same data. */
export interface OutboxRow {
  /** The jobs' ids follow from it, so that a row that is enqueued twice makes each job once. */
  id: string;
  names: readonly string[];
  /** Jobs of one name and group run in the order of their rows; null: in any order. */
  group: string | null;
  /** While a job of the name with this key waits or runs, there is no second one; null: no key. */
  key: string | null;
  /** Milliseconds since 1970; null: at once. */
  dueAt: number | null;
  /** JSON. */
  data: string;
  /** Encrypted by the queue, as of a job; null: it has none. */
  secret: Uint8Array | null;
}

export interface StoredOutboxRow extends OutboxRow {
  /** The place in the order of commits. */
  seq: number;
}
