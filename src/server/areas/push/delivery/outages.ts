import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { OUTAGE_MAX_MS, OUTAGE_PAUSE_FIRST_MS, OUTAGE_PAUSE_MAX_MS, OUTAGE_SITES_MAX } from "../limits.ts";

interface Outage {
  readonly since: Millis;
  pauseMs: number;
  /** Whether a message is being tried. */
  isTrying: boolean;
  /** Whether the backoff is still running. */
  isPausing: boolean;
  cancelPause: () => void;
  waiting: Set<(isGo: boolean) => void>;
}

/**
 * A circuit breaker for each unavailable push service. Messages to it wait; after a backoff, one message is tried, and its answer
 * releases the others. After OUTAGE_MAX_MS without an answer the waiting and all new messages fail, except for one that is tried
 * after each pause. [PU100]
 */
export class Outages {
  readonly #clock: Clock;
  readonly #stopping: AbortSignal;
  readonly #outages = new BoundedMap<string, Outage>(OUTAGE_SITES_MAX, (_site, outage) => {
    outage.cancelPause();
    release(outage, true);
  });

  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock;
    this.#stopping = stopping;
    stopping.addEventListener("abort", () => {
      for (const outage of this.#outages.values()) {
        outage.cancelPause();
        release(outage, false);
      }
    });
  }

  /** Whether a message to the site would have to wait. */
  isPaused(site: string): boolean {
    return this.#outages.peek(site) !== undefined;
  }

  /** Resolves when a message to the site may be tried; false: the message has failed, `patience` is aborted, or the server stops. */
  turn(site: string, patience: AbortSignal): Promise<boolean> {
    const outage = this.#outages.get(site);
    if (this.#stopping.aborted || patience.aborted) return Promise.resolve(false);
    if (outage === undefined) return Promise.resolve(true);
    if (!outage.isPausing && !outage.isTrying) {
      outage.isTrying = true;
      return Promise.resolve(true);
    }
    if (this.#isOverdue(outage)) return Promise.resolve(false);
    return new Promise((resolve) => {
      const giveUp = (): void => go(false);
      const go = (isGo: boolean): void => {
        outage.waiting.delete(go);
        patience.removeEventListener("abort", giveUp);
        resolve(isGo);
      };
      outage.waiting.add(go);
      patience.addEventListener("abort", giveUp);
    });
  }

  answered(site: string): void {
    const outage = this.#outages.peek(site);
    if (outage === undefined) return;
    this.#outages.delete(site);
    outage.cancelPause();
    release(outage, true);
  }

  failed(site: string): void {
    const outage = this.#outages.peek(site);
    if (this.#stopping.aborted) return;
    if (outage === undefined) {
      const begun: Outage = {
        since: this.#clock.now(),
        pauseMs: OUTAGE_PAUSE_FIRST_MS,
        isTrying: false,
        isPausing: false,
        cancelPause: () => {},
        waiting: new Set(),
      };
      this.#outages.set(site, begun);
      this.#pause(begun);
    } else if (!outage.isPausing) {
      // Further calls that were running when the outage began do not start another pause.
      this.#pause(outage);
    }
  }

  #pause(outage: Outage): void {
    outage.isTrying = false;
    outage.isPausing = true;
    if (this.#isOverdue(outage)) release(outage, false);
    outage.cancelPause = this.#clock.after(outage.pauseMs, () => {
      outage.isPausing = false;
      const [first] = outage.waiting;
      outage.isTrying = first !== undefined;
      first?.(true);
    });
    outage.pauseMs = Math.min(2 * outage.pauseMs, OUTAGE_PAUSE_MAX_MS);
  }

  #isOverdue(outage: Outage): boolean {
    return this.#clock.now() - outage.since >= OUTAGE_MAX_MS;
  }
}

function release(outage: Outage, isGo: boolean): void {
  for (const go of outage.waiting) go(isGo);
}
