import type { Clock, Millis } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";

export interface MessageRate {
  /** Whether one more message fits into the last second; one that does not is not counted. */
  admit(): boolean;
  /** Forgets what was counted. */
  reset(): void;
}

/** So many characters at once, and as many again as the seconds bring: long messages take long to parse. */
export class CharRate {
  readonly #perSecond: number;
  readonly #atOnce: number;
  #left: number;
  #at: Millis;

  constructor(perSecond: number, atOnce: number, now: Millis) {
    this.#perSecond = perSecond;
    this.#atOnce = atOnce;
    this.#left = atOnce;
    this.#at = now;
  }

  /** Whether a message of this length fits; one that does not is not counted. */
  admit(length: number, now: Millis): boolean {
    const refill = (Math.max(0, now - this.#at) / SECOND_MS) * this.#perSecond;
    this.#left = Math.min(this.#atOnce, this.#left + refill);
    this.#at = now;
    if (length > this.#left) return false;
    this.#left -= length;
    return true;
  }
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
