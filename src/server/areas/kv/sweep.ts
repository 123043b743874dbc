import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import { SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS } from "./limits.ts";
import type { EntryStore } from "./store.ts";

/** Removes expired keys in steps of bounded size. Expired keys are invisible, swept or not. */
export function startSweep(deps: { stores: readonly EntryStore[]; clock: Clock; logger: Logger }): () => Promise<void> {
  const { stores, clock, logger } = deps;
  return startSweeping({
    clock,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep(stopping) {
      const now = clock.now();
      let isMore = false;
      for (const store of stores) {
        if (stopping.aborted || !store.hasExpired(now)) continue;
        if (await store.removeExpired(now)) isMore = true;
      }
      return isMore;
    },
    onFailure: (cause) => logger.error("sweeping expired keys failed", { cause }),
  });
}
