import type { Clock } from "../clock.ts";

/**
 * Creates a write-behind buffer, which decides when waiting rows are written: shortly after the first arrives, at once for a reader,
 * and at the stop. `writeAll` writes everything that is waiting and resolves to whether some of it must be retried.
 * It never rejects. `delayMs`: how long rows wait for others; `retryMs`: delay before a retry.
 */
export function createWriteBehind(deps: {
  clock: Clock;
  delayMs: number;
  retryMs: number;
  writeAll: () => Promise<boolean>;
}) {
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
  /** Resolves when everything that was waiting at the call has been written, or has failed to be. */
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
    /** Plans a write. Call it when rows are waiting. */
    wake: (): void => schedule(delayMs),
    flush,
    /** Writes everything that is waiting; nothing is scheduled afterwards. */
    async stop(): Promise<void> {
      isStopped = true;
      await flush();
      cancelTimer?.();
    },
  };
}
