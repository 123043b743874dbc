import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { AppError } from "../kernel/errors.ts";
import { QUEUE_MAX_QUERIES, QUEUE_TIMEOUT_MS } from "./limits.ts";

/** Queries that wait for a process, first come, first served. */
export interface Turns<T> {
  /** Errors: 503 when too many wait, 408 after the time limit or when `signal` aborts. */
  wait(signal: AbortSignal | undefined): Promise<T>;
  readonly isEmpty: boolean;
  /** Gives the first its turn; there has to be one. */
  give(turn: T): void;
  refuseAll(reason: Error): void;
}

/** Nobody reads this one. */
export const clientGone = (): AppError => new AppError(408, "The client went away");

export function createTurns<T>(clock: Clock): Turns<T> {
  const waiting = new Set<PromiseWithResolvers<T>>();

  return {
    async wait(signal) {
      if (waiting.size >= QUEUE_MAX_QUERIES) throw new AppError(503, "Too many queries are waiting for this database");
      const turn = Promise.withResolvers<T>();
      const refuse = (reason: Error): void => {
        // At once, and not when the promise goes on: a turn given in between would be lost.
        waiting.delete(turn);
        turn.reject(reason);
      };
      const abort = (): void => refuse(clientGone());
      const cancelTimeout = clock.after(QUEUE_TIMEOUT_MS, () => {
        const waitedSeconds = QUEUE_TIMEOUT_MS / SECOND_MS;
        refuse(new AppError(408, `The query waited ${waitedSeconds} s for others and has not begun`));
      });
      signal?.addEventListener("abort", abort);
      waiting.add(turn);
      try {
        return await turn.promise;
      } finally {
        cancelTimeout();
        signal?.removeEventListener("abort", abort);
      }
    },
    get isEmpty() {
      return waiting.size === 0;
    },
    give(process) {
      const [first] = waiting;
      if (first === undefined) throw new Error("nobody waits for a turn");
      waiting.delete(first);
      first.resolve(process);
    },
    refuseAll(reason) {
      for (const { reject } of waiting) reject(reason);
      waiting.clear();
    },
  };
}
