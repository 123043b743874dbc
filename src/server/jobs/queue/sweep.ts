import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import {
  DONE_RETENTION_MS,
  FAILED_RETENTION_MS,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_BYTES,
  SWEEP_STEP_JOBS,
} from "../limits.ts";
import { DONE, FAILED } from "../types.ts";
import type { JobStore } from "./store.ts";

/** Removes finished jobs whose retention has ended, in steps of bounded size. */
export function startSweep(deps: { store: JobStore; clock: Clock; logger: Logger }): () => Promise<void> {
  const { store, clock, logger } = deps;
  return startSweeping({
    clock,
    firstMs: SWEEP_FIRST_MS,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep() {
      const now = clock.now();
      const step = { limit: SWEEP_STEP_JOBS, bytesMax: SWEEP_STEP_BYTES };
      const isMoreDone = await store.sweep(DONE, { until: now - DONE_RETENTION_MS, ...step });
      const isMoreFailed = await store.sweep(FAILED, { until: now - FAILED_RETENTION_MS, ...step });
      return isMoreDone || isMoreFailed;
    },
    onFailure: (cause) => logger.error("jobs: finished jobs could not be removed", { cause }),
  });
}
