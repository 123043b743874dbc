import { AsyncLocalStorage } from "node:async_hooks";
import type { MaybePromise } from "./maybe-promise.ts";

/** Holds what leaves a node of a cluster until the log has everything that it may have been computed from. [CLU42] */
export interface AnswerGate {
  /** Grows with each commit: what is computed at one position waits for the same. */
  readonly position: number;
  /** Returns null when what was computed up to now may leave. Otherwise it resolves when it may. Errors: 503 when it never may. */
  wait(): Promise<void> | null;
  /** Returns null when the lease holds: what the log is known to have may leave then. Otherwise as `wait`. */
  lease(): Promise<void> | null;
  /** Resolves when no node of the cluster uses what has been taken away up to now. Errors: 503 when that is not known in time. */
  everywhere(): Promise<void>;
}

/** Passes a value on when it may leave; without a gate it always may. */
export function behind<T>(gate: AnswerGate | null, value: T): MaybePromise<T> {
  const wait = gate === null ? null : gate.wait();
  return wait === null ? value : wait.then(() => value);
}

/** Answers that say nothing of what is stored. */
const silent = new WeakSet<Response>();

/**
 * Marks an answer that says nothing of what is stored, and so waits for nothing: that a node cannot answer, how it is, that a connection is
 * a WebSocket now, whose messages wait by themselves. What code of the config has made is never marked.
 */
export function silently(answer: Response): Response {
  silent.add(answer);
  return answer;
}

export const isSilent = (answer: Response): boolean => silent.has(answer);

/** An answer that is being computed at a node of a cluster. */
export interface HeldAnswer {
  /** Whether a session, a role or another right was taken from somebody for it. */
  hasRevoked: boolean;
  /** The request of which the answer shows what its own write has found and made, and nothing else; null: it may show anything. */
  durable: Request | null;
}

/** Holds the answer for which code runs: a right is taken away far below the handler that answers. */
const answers = new AsyncLocalStorage<HeldAnswer>();

/** Runs `work`, and everything it starts, for an answer. */
export const answering = <Args extends readonly unknown[], T>(
  answer: HeldAnswer,
  work: (...args: Args) => T,
  ...args: Args
): T => answers.run(answer, work, ...args);

/** Notes that a right was taken away: the answer for which the code runs says so when no node uses it any more. [CLU45] */
export function noteRevocation(): void {
  const answer = answers.getStore();
  if (answer !== undefined) answer.hasRevoked = true;
}

/**
 * Notes that the answer to a request shows what a transaction of its own has found and made, and nothing that was read since. The log
 * has that, as the transaction has been answered. [CLU46]
 */
export function noteDurable(request: Request): void {
  const answer = answers.getStore();
  if (answer !== undefined) answer.durable = request;
}
