import { FairQueue, type Queued } from "../db/processes/fair-queue.ts";
import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { AppError, clientGone } from "../kernel/errors.ts";
import { QUEUE_MAX_QUERIES, QUEUE_PLACE_BYTES, QUEUE_TIMEOUT_MS } from "./limits.ts";

/** Queries that wait for a process: callers take turns, however many queries one of them sends. */
export interface Turns<T> {
  /** Errors: 503 when too many wait, 408 after the time limit or when `signal` aborts. */
  wait(query: { caller: string; sizeBytes: number; signal: AbortSignal | undefined }): Promise<T>;
  readonly isEmpty: boolean;
  /** Gives the next caller its turn; there has to be one. `running`: how many queries of a caller are under way. */
  give(turn: T, running: (caller: string) => number): void;
  refuseAll(reason: Error): void;
}

interface Waiting<T> extends Queued, PromiseWithResolvers<T> {}

export function createTurns<T>(clock: Clock): Turns<T> {
  const queue = new FairQueue<Waiting<T>>(QUEUE_MAX_QUERIES);

  return {
    async wait({ caller, sizeBytes, signal }) {
      const places = 1 + Math.floor(sizeBytes / QUEUE_PLACE_BYTES);
      const turn: Waiting<T> = { caller, places, ...Promise.withResolvers<T>() };
      for (const refused of queue.add(turn)) {
        refused.reject(new AppError(503, "Too many queries are waiting for this database"));
      }
      const refuse = (reason: Error): void => {
        // At once, and not when the promise goes on: a turn given in between would be lost.
        queue.remove(turn);
        turn.reject(reason);
      };
      const abort = (): void => refuse(clientGone());
      const cancelTimeout = clock.after(QUEUE_TIMEOUT_MS, () => {
        const waitedSeconds = QUEUE_TIMEOUT_MS / SECOND_MS;
        refuse(new AppError(408, `The query waited ${waitedSeconds} s for others and has not begun`));
      });
      signal?.addEventListener("abort", abort);
      try {
        return await turn.promise;
      } finally {
        cancelTimeout();
        signal?.removeEventListener("abort", abort);
      }
    },
    get isEmpty() {
      return queue.size === 0;
    },
    give(turn, running) {
      const next = queue.take({ running, mayRun: () => true });
      if (next === null) throw new Error("nobody waits for a turn");
      next.resolve(turn);
    },
    refuseAll(reason) {
      for (const { reject } of queue.drain()) reject(reason);
    },
  };
}
