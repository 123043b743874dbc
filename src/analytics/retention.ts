import type { Clock } from "../kernel/clock.ts";
import { DAY_MS } from "../kernel/duration.ts";
import type { Logger } from "../kernel/logger.ts";
import {
  RETENTION_MS,
  RETENTION_SLACK_MS,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
} from "./limits.ts";
import type { Summaries } from "./summaries.ts";

/**
 * Sums up the days that are older than what is kept row by row, oldest first, and removes their rows in steps of bounded
 * size. The function returned ends it, and resolves when no step is under way. Spec: Limits / Analytics.
 */
export function startRetention(deps: {
  summaries: readonly Summaries[];
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { summaries, clock, logger } = deps;
  const stopping = new AbortController();
  let step: Promise<void> = Promise.resolve();

  /** Whether there is more to do at once. */
  const stepOf = async (summary: Summaries): Promise<boolean> => {
    const day = summary.oldestDay();
    if (day !== null && day + DAY_MS + RETENTION_MS + RETENTION_SLACK_MS <= clock.now()) {
      await summary.sumUp(day, stopping.signal);
      return true;
    }
    return (await summary.removeSummed(SWEEP_STEP_ROWS)) === SWEEP_STEP_ROWS;
  };
  const sweep = async (): Promise<boolean> => {
    let isMore = false;
    for (const summary of summaries) if (!stopping.signal.aborted && (await stepOf(summary))) isMore = true;
    return isMore;
  };
  const run = (): void => {
    step = sweep()
      .catch((cause: unknown) => {
        if (!stopping.signal.aborted) logger.error("summing up old analytics failed", { cause });
        return false;
      })
      .then((isMore) => {
        if (!stopping.signal.aborted) cancel = clock.after(isMore ? SWEEP_PAUSE_MS : SWEEP_INTERVAL_MS, run);
      });
  };
  let cancel = clock.after(SWEEP_FIRST_MS, run);

  return () => {
    stopping.abort();
    cancel();
    return step;
  };
}
