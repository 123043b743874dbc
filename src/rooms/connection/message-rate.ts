import type { Clock, Millis } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";

export interface MessageRate {
  /** Whether one more message fits into the last second; one that does not is not counted. */
  admit(): boolean;
  /** Forgets what was counted. */
  reset(): void;
}

/** At most `messagesPerSecond` in any second, wherever it begins. */
export function createMessageRate(messagesPerSecond: number, clock: Clock): MessageRate {
  const size = Math.max(1, Math.floor(messagesPerSecond));
  let admitted: Millis[] = [];
  let next = 0;
  return {
    admit() {
      const now = clock.now();
      const oldest = admitted[next];
      // One of the future was admitted before the clock was set back.
      if (oldest !== undefined && oldest <= now && now - oldest < SECOND_MS) return false;
      admitted[next] = now;
      next = (next + 1) % size;
      return true;
    },
    reset() {
      admitted = [];
      next = 0;
    },
  };
}
