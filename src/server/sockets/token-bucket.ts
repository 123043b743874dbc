import type { Millis } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";

/** Holds up to `atOnce` tokens and refills evenly. Small, since every connection has two. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #atOnce: number;
  #left: number;
  #at: Millis;

  constructor(limits: { perSecond: number; atOnce: number }, now: Millis) {
    this.#perSecond = limits.perSecond;
    this.#atOnce = limits.atOnce;
    this.#left = limits.atOnce;
    this.#at = now;
  }

  /** Holds what it is refilled with in a second. */
  static ofRate(perSecond: number, now: Millis): TokenBucket {
    return new TokenBucket({ perSecond, atOnce: perSecond }, now);
  }

  /** Whether `count` tokens are there; if so, they are taken. */
  take(count: number, now: Millis): boolean {
    const refill = (Math.max(0, now - this.#at) / SECOND_MS) * this.#perSecond;
    this.#left = Math.min(this.#atOnce, this.#left + refill);
    this.#at = now;
    if (this.#left < count) return false;
    this.#left -= count;
    return true;
  }

  /** As if nothing had been taken. */
  refill(): void {
    this.#left = this.#atOnce;
  }
}
