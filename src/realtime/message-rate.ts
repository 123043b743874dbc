import type { Millis } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";

/** A bucket of one second's messages that fills up again evenly. Kept small: every connection has one. */
export class MessageRate {
  readonly #perSecond: number;
  #left: number;
  #at: Millis;

  constructor(perSecond: number, now: Millis) {
    this.#perSecond = perSecond;
    this.#left = perSecond;
    this.#at = now;
  }

  /** Counts one message; false when it is one too many. */
  take(now: Millis): boolean {
    const refill = (Math.max(0, now - this.#at) / SECOND_MS) * this.#perSecond;
    this.#left = Math.min(this.#perSecond, this.#left + refill);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
