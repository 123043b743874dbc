import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import { SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS, SWEEP_STEP_KEYS } from "./limits.ts";
import type { EntryStore } from "./store.ts";

/**
 * Removes what has expired, in steps of bounded size with pauses between them. Expired keys are never seen, swept or not.
 * The function returned ends it, and resolves when no step is under way.
 */
export function startSweep(deps: { stores: readonly EntryStore[]; clock: Clock; logger: Logger }): () => Promise<void> {
  const { stores, clock, logger } = deps;
  let isStopped = false;
  let step: Promise<void> = Promise.resolve();

  const sweepOnce = async (): Promise<boolean> => {
    const now = clock.now();
    let isMore = false;
    for (const store of stores) {
      if (isStopped || !store.hasExpired(now)) continue;
      if ((await store.removeExpired(now, SWEEP_STEP_KEYS)) === SWEEP_STEP_KEYS) isMore = true;
    }
    return isMore;
  };
  const run = (): void => {
    step = sweepOnce()
      .catch((cause: unknown) => {
        logger.error("sweeping expired keys failed", { cause });
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
