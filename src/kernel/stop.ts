import type { Clock } from "./clock.ts";
import { SECOND_MS } from "./duration.ts";
import type { Logger } from "./logger.ts";

/** From the signal to the end of the process: container runtimes kill what is still there after 10 s. */
export const STOP_MAX_MS = 8 * SECOND_MS;
/** How long what is under way when a stop begins may go on: requests, after-hooks, sends to providers. */
export const UNDER_WAY_MAX_MS = 5 * SECOND_MS;
/** A step whose time is over before it begins is waited for that long. */
const STEP_MIN_MS = 100;

export interface StopStep {
  name: string;
  /** Counted from the beginning of the whole stop: later the step is no longer waited for. null: it is waited for always. */
  untilMs: number | null;
  stop(): void | Promise<void>;
}

/**
 * Runs every step whatever the others threw: phases one after another, the steps of a phase together. Errors: an
 * AggregateError of what steps threw, after the last of them; each was logged with its name.
 */
export async function stopAll(
  phases: readonly (readonly StopStep[])[],
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> {
  const startedAt = performance.now();
  const failures: unknown[] = [];
  const run = async ({ name, untilMs, stop }: StopStep): Promise<void> => {
    try {
      // Inside, so that what throws at once is caught as well.
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

/** false: the time was over first. Errors: those of `work`; one that comes later is nobody's any more. */
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
