import type { Clock } from "../clock.ts";
import { STEP_MIN_MS } from "../limits.ts";
import type { Logger } from "../logger.ts";

export interface StopStep {
  name: string;
  /** Milliseconds from the beginning of the stop until the step is given up; null: it is always awaited. */
  untilMs: number | null;
  stop(): void | Promise<void>;
}

/**
 * Runs all steps, even if some throw: phases one after another, the steps of a phase together. Errors: after the last step, an
 * AggregateError of what steps threw; each error is logged with the step's name.
 */
export async function stopAll(
  phases: readonly (readonly StopStep[])[],
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> {
  const startedAt = performance.now();
  const failures: unknown[] = [];
  const run = async ({ name, untilMs, stop }: StopStep): Promise<void> => {
    try {
      // Called inside, so that a synchronous throw is caught as well.
      const stopped = Promise.resolve(stop());
      if (untilMs === null) return await stopped;
      const leftMs = Math.max(STEP_MIN_MS, untilMs - (performance.now() - startedAt));
      if (await endsWithin(stopped, leftMs, clock)) return;
      logger.warn(`${name} did not stop in time, and is left`);
    } catch (cause) {
      logger.error(`${name} failed to stop`, { cause });
      failures.push(cause);
    }
  };
  for (const phase of phases) await Promise.all(phase.map(run));
  if (failures.length > 0) throw new AggregateError(failures, "Parts of the server failed to stop; the log names them");
}

/** Resolves to whether `work` ends within `timeoutMs`. Errors: those of `work`; a later one is ignored. */
export async function endsWithin(work: Promise<unknown>, timeoutMs: number, clock: Clock): Promise<boolean> {
  const { promise: isOver, resolve } = Promise.withResolvers<false>();
  const cancel = clock.after(timeoutMs, () => resolve(false));
  const ended = work.then(() => true as const);
  ended.catch(() => {});
  try {
    return await Promise.race([ended, isOver]);
  } finally {
    cancel();
  }
}
