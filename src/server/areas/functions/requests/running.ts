import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { RUNNING_MAX } from "../limits.ts";

interface Run {
  endsAt: Millis;
  giveUp: () => void;
}

/** The handlers that have not answered yet. */
export type Running = ReturnType<typeof createRunning>;

export function createRunning(clock: Clock) {
  // Grouped by timeout, each in order of start: the first one of each group expires first.
  const byTimeout = new Map<number, Set<Run>>();
  let cancelTimer: (() => void) | null = null;
  let count = 0;

  const schedule = (): void => {
    cancelTimer ??= clock.after(SECOND_MS, () => {
      cancelTimer = null;
      const now = clock.now();
      for (const [seconds, runs] of byTimeout) {
        for (const run of runs) {
          // The clock may have been set back.
          if (run.endsAt > now && run.endsAt <= now + seconds * SECOND_MS) break;
          runs.delete(run);
          run.giveUp();
        }
      }
      if ([...byTimeout.values()].some(({ size }) => size > 0)) schedule();
    });
  };
  const runsOf = (seconds: number): Set<Run> => {
    const found = byTimeout.get(seconds) ?? new Set();
    byTimeout.set(seconds, found);
    return found;
  };

  return {
    /**
     * Resolves to `value`, or to what `fail` returns for its error, or for a 503 when it takes longer than `seconds`. A later result
     * is ignored, but counts as running until it settles.
     */
    within<T>(value: Promise<T>, seconds: number, fail: (cause: unknown) => T): Promise<T> {
      const runs = runsOf(seconds);
      count += 1;
      return new Promise<T>((resolve) => {
        const run: Run = {
          endsAt: clock.now() + seconds * SECOND_MS,
          giveUp: () => resolve(fail(new AppError(503, `There was no answer within ${seconds} s`))),
        };
        runs.add(run);
        schedule();
        const end = (): void => {
          count -= 1;
          runs.delete(run);
        };
        value.then(
          (result) => {
            end();
            resolve(result);
          },
          (cause: unknown) => {
            end();
            resolve(fail(cause));
          },
        );
      });
    },
    /** Checks the number of running handlers. Errors: 503 when there are too many. */
    checkRoom(): void {
      if (count >= RUNNING_MAX) throw new AppError(503, `At most ${RUNNING_MAX} requests to routes may run at once`);
    },
    stop(): void {
      cancelTimer?.();
    },
  };
}
