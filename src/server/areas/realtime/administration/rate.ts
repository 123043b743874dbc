import type { Millis } from "../../../../kernel/clock.ts";
import { RATE_WINDOW_MS } from "../limits.ts";

/** How many a second, over the last RATE_WINDOW_MS: those of the window that is under way, and the share of the one before that still counts. */
export class Rate {
  #window = 0;
  #count = 0;
  #before = 0;

  add(count: number, now: Millis): void {
    this.#turn(now);
    this.#count += count;
  }

  perSecond(now: Millis): number {
    this.#turn(now);
    const share = 1 - (now % RATE_WINDOW_MS) / RATE_WINDOW_MS;
    return ((this.#count + this.#before * share) * 1000) / RATE_WINDOW_MS;
  }

  #turn(now: Millis): void {
    const window = Math.floor(now / RATE_WINDOW_MS);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#count : 0;
    this.#count = 0;
    this.#window = window;
  }
}
