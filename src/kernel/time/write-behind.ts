import type { Clock } from "../clock.ts";

/** Decides when waiting rows are written: shortly after the first arrives, at once for a reader, and at the stop. */
export interface WriteBehind {
  /** Plans a write. Call it when rows are waiting. */
  wake(): void;
  /** Resolves when everything that was waiting at the call has been written, or has failed to be. */
  flush(): Promise<void>;
  /** Writes everything that is waiting; nothing is scheduled afterwards. */
  stop(): Promise<void>;
}

/**
 * Creates a write-behind buffer. `writeAll` writes everything that is waiting and resolves to whether some of it must be retried.
 * It never rejects. `delayMs`: how long rows wait for others; `retryMs`: delay before a retry.
 */
export function createWriteBehind(deps: {
  clock: Clock;
  delayMs: number;
  retryMs: number;
  writeAll: () => Promise<boolean>;
}): WriteBehind {
  const { clock, delayMs, retryMs, writeAll } = deps;
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
    if (mustRetry) schedule(retryMs);
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
    wake: () => schedule(delayMs),
    flush,
    async stop() {
      isStopped = true;
      await flush();
      cancelTimer?.();
    },
  };
}
