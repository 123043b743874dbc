import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import { LOG_RETENTION_MS, SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS, SWEEP_STEP_ROWS } from "./limits.ts";
import type { PushStore } from "./store.ts";

/**
 * Removes rows of the log that are a day old, in steps of bounded size with pauses between them. They are never shown,
 * swept or not. The function returned ends it, and resolves when no step is under way.
 */
export function startSweep(deps: { store: PushStore; clock: Clock; logger: Logger }): () => Promise<void> {
  const { store, clock, logger } = deps;
  let isStopped = false;
  let step: Promise<void> = Promise.resolve();

  const sweepOnce = async (): Promise<boolean> => {
    const until = clock.now() - LOG_RETENTION_MS;
    if (!store.hasExpiredLogs(until)) return false;
    return (await store.removeExpiredLogs(until, SWEEP_STEP_ROWS)) === SWEEP_STEP_ROWS;
  };
  const run = (): void => {
    step = sweepOnce()
      .catch((cause: unknown) => {
        logger.error("push: removing old rows of the log failed", { cause });
        return false;
      })
      .then((isMore) => {
        if (!isStopped) cancel = clock.after(isMore ? SWEEP_PAUSE_MS : SWEEP_INTERVAL_MS, run);
      });
  };
  let cancel = clock.after(SWEEP_INTERVAL_MS, run);

  return () => {
    isStopped = true;
    cancel();
    return step;
  };
}
