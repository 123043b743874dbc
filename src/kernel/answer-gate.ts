import type { MaybePromise } from "./maybe-promise.ts";

/** Holds what leaves a node of a cluster until the log has everything that it may have been computed from. [CLU42] */
export interface AnswerGate {
  /** Grows with each commit: what is computed at one position waits for the same. */
  readonly position: number;
  /** Returns null when what was computed up to now may leave. Otherwise it resolves when it may. Errors: 503 when it never may. */
  wait(): Promise<void> | null;
}

/** Passes a value on when it may leave; without a gate it always may. */
export function behind<T>(gate: AnswerGate | null, value: T): MaybePromise<T> {
  const wait = gate === null ? null : gate.wait();
  return wait === null ? value : wait.then(() => value);
}
