import type { Clock, Millis } from "../clock.ts";
import type { Logger } from "../logger.ts";

/**
 * Creates a function that warns of what anybody can bring about: with the first of them at once, and then at most every `pauseMs` with
 * the newest one and the number of those that were not logged. `message`: what has happened.
 */
export function createSparingWarnings(
  { logger, clock }: { logger: Pick<Logger, "warn">; clock: Pick<Clock, "now"> },
  message: string,
  pauseMs: number,
): (facts: Record<string, unknown>) => void {
  let loggedAt: Millis | null = null;
  let others = 0;
  return (facts) => {
    const now = clock.now();
    if (loggedAt !== null && Math.abs(now - loggedAt) < pauseMs) {
      others += 1;
      return;
    }
    logger.warn(message, others === 0 ? facts : { ...facts, others });
    loggedAt = now;
    others = 0;
  };
}
