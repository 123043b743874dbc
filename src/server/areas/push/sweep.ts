import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import { LOG_RETENTION_MS, SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS, SWEEP_STEP_ROWS } from "./limits.ts";
import type { PushStore } from "./store.ts";

/** Removes rows of the log that are a day old, in steps of bounded size. Such rows are never shown, removed or not. */
export function startSweep(deps: { store: PushStore; clock: Clock; logger: Logger }): () => Promise<void> {
  const { store, clock, logger } = deps;
  return startSweeping({
    clock,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep() {
      const until = clock.now() - LOG_RETENTION_MS;
      if (!store.hasExpiredLogs(until)) return false;
      return (await store.removeExpiredLogs(until, SWEEP_STEP_ROWS)) === SWEEP_STEP_ROWS;
    },
    onFailure: (cause) => logger.error("push: old rows of the log could not be removed", { cause }),
  });
}
