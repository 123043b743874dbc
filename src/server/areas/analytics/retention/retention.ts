import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { DAY_MS } from "../../../../kernel/time/duration.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import {
  RETENTION_MS,
  RETENTION_SLACK_MS,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
} from "../limits.ts";
import type { SlowRequests } from "../slow/slow-requests.ts";
import type { Summaries } from "./summaries.ts";

/**
 * Summarises days older than RETENTION_MS, oldest first, and removes their rows in steps of bounded size. The returned
 * function stops it and resolves when no step is running. [AN19]
 */
export function startRetention(deps: {
  summaries: readonly Summaries[];
  slowRequests: Pick<SlowRequests, "sweep">;
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { summaries, slowRequests, clock, logger } = deps;
  /** Whether another step is due immediately. */
  const stepOf = async (summary: Summaries, stopping: AbortSignal): Promise<boolean> => {
    if ((await summary.removeSummed(SWEEP_STEP_ROWS)) === SWEEP_STEP_ROWS) return true;
    const day = summary.oldestDay();
    if (day !== null && day + DAY_MS + RETENTION_MS + RETENTION_SLACK_MS <= clock.now()) {
      await summary.sumUp(day, stopping);
      return true;
    }
    return false;
  };
  return startSweeping({
    clock,
    firstMs: SWEEP_FIRST_MS,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep(stopping) {
      let isMore = await slowRequests.sweep(clock.now());
      for (const summary of summaries) if (!stopping.aborted && (await stepOf(summary, stopping))) isMore = true;
      return isMore;
    },
    onFailure: (cause) => logger.error("old analytics could not be summarised", { cause }),
  });
}
