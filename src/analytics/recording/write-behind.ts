import type { Clock } from "../../kernel/clock.ts";
import { WRITE_DELAY_MS, WRITE_RETRY_MS } from "../limits.ts";

/** Decides when waiting rows are written: shortly after the first arrives, at once for a reader, and at the stop. */
export interface WriteBehind {
  /** Call it when rows are waiting. */
  wake(): void;
  /** Resolves when everything that was waiting at the call has been written, or has failed to be. */
  flush(): Promise<void>;
  /** Writes everything that is waiting; nothing is scheduled afterwards. */
  stop(): Promise<void>;
}

/** `writeAll` writes everything that is waiting and resolves to whether some of it must be retried. It never rejects. */
export function createWriteBehind(deps: { clock: Clock; writeAll: () => Promise<boolean> }): WriteBehind {
  const { clock, writeAll } = deps;
  let cancelTimer: (() => void) | null = null;
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  let isStopped = false;

  const schedule = (delayMs: number): void => {
    if (isStopped || cancelTimer !== null) return;
    cancelTimer = clock.after(delayMs, () => {
      cancelTimer = null;
      void flush();
    });
  };
  const run = async (): Promise<void> => {
    cancelTimer?.();
    cancelTimer = null;
    const mustRetry = await writeAll();
    running = null;
    if (mustRetry) schedule(WRITE_RETRY_MS);
  };
  const flush = (): Promise<void> => {
    if (running === null) {
      running = run();
      return running;
    }
    // Rows that arrived after the current write began: one further write serves all callers that wait meanwhile.
    next ??= running.then(() => {
      next = null;
      return flush();
    });
    return next;
  };

  return {
    wake: () => schedule(WRITE_DELAY_MS),
    flush,
    async stop() {
      isStopped = true;
      await flush();
      cancelTimer?.();
    },
  };
}
