import type { Clock } from "../../kernel/clock.ts";
import { WRITE_DELAY_MS, WRITE_RETRY_MS } from "../limits.ts";

/** When what waits is written: soon after the first of it came, at once when somebody wants to read it, at the end. */
export interface WriteBehind {
  /** Something waits now. */
  wake(): void;
  /** Resolves when what waited at the call has been written, or could not be. */
  flush(): Promise<void>;
  /** Writes what waits; nothing is scheduled from then on. */
  stop(): Promise<void>;
}

/** `writeAll` writes what waits, and resolves with whether some of it has to be tried again later; it never rejects. */
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
    const isAgain = await writeAll();
    running = null;
    if (isAgain) schedule(WRITE_RETRY_MS);
  };
  const flush = (): Promise<void> => {
    if (running === null) {
      running = run();
      return running;
    }
    // What came after the one under way began: one more serves all who ask meanwhile.
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
