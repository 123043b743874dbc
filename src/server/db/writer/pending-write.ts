import type { RequestTrace } from "../../../kernel/observing/request-trace.ts";
import type { AuditText } from "../audit/types.ts";
import type { Origin } from "../outbox/types.ts";
import type { Change, Transaction } from "../types.ts";

export interface PendingWrite {
  work: (tx: Transaction) => unknown;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  origin: Origin;
  needsSync: boolean;
  /** The request that makes this write. */
  trace: RequestTrace | undefined;
}

export type Outcome =
  | { ok: true; result: unknown; changes: readonly Change[]; hasEnqueued: boolean; audits: readonly AuditText[] }
  | { ok: false; error: unknown };

export interface DoneWrite {
  write: PendingWrite;
  outcome: Outcome;
}

/** The outcome of a write that has not run yet. If the transaction fails, such a write fails with it, like a successful one. */
export const NOT_RUN: Outcome = { ok: true, result: undefined, changes: [], hasEnqueued: false, audits: [] };

/** A committed transaction that waits for its sync. */
export interface Commit {
  writes: readonly DoneWrite[];
  groups: readonly (readonly Change[])[];
  /** The number of the first change of each group. */
  seqs: readonly number[];
  /** The number of the last row of audit entries; 0: it has none. */
  auditSeq: number;
  /** False: all its writes failed, or none of them has to be on disk. */
  needsSync: boolean;
}
