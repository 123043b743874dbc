import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { OUTAGE_MAX_MS, OUTAGE_PAUSE_FIRST_MS, OUTAGE_PAUSE_MAX_MS, OUTAGE_SITES_MAX } from "../limits.ts";

/**
 * Push services that do not answer now. What is to go to one of them waits; after a pause that grows, one message is tried,
 * and its answer lets the others go on. A service that has not answered for OUTAGE_MAX_MS is given up: what waits for it has
 * failed, and so has what comes, but for the one that is tried after each pause. [PU100]
 */
export interface Outages {
  /** Whether a message would have to wait now. */
  isPaused(site: string): boolean;
  /** Resolves when a message to the site may be tried; false: the site is given up, or the server stops. */
  turn(site: string): Promise<boolean>;
  answered(site: string): void;
  failed(site: string): void;
}

interface Outage {
  readonly since: Millis;
  pauseMs: number;
  /** A message is being tried. */
  isTrying: boolean;
  /** The pause is not over. */
  isPausing: boolean;
  cancelPause: () => void;
  waiting: ((isGo: boolean) => void)[];
}

export function createOutages(clock: Clock, stopping: AbortSignal): Outages {
  const release = (outage: Outage, isGo: boolean): void => {
    for (const go of outage.waiting.splice(0)) go(isGo);
  };
  const outages = new BoundedMap<string, Outage>(OUTAGE_SITES_MAX, (_site, outage) => {
    outage.cancelPause();
    release(outage, true);
  });
  const isGivenUp = (outage: Outage): boolean => clock.now() - outage.since >= OUTAGE_MAX_MS;
  const pause = (outage: Outage): void => {
    outage.isTrying = false;
    outage.isPausing = true;
    if (isGivenUp(outage)) release(outage, false);
    outage.cancelPause = clock.after(outage.pauseMs, () => {
      outage.isPausing = false;
      const first = outage.waiting.shift();
      outage.isTrying = first !== undefined;
      first?.(true);
    });
    outage.pauseMs = Math.min(2 * outage.pauseMs, OUTAGE_PAUSE_MAX_MS);
  };
  stopping.addEventListener("abort", () => {
    for (const outage of outages.values()) {
      outage.cancelPause();
      release(outage, false);
    }
  });

  return {
    isPaused: (site) => outages.peek(site) !== undefined,
    turn(site) {
      const outage = outages.get(site);
      if (stopping.aborted) return Promise.resolve(false);
      if (outage === undefined) return Promise.resolve(true);
      if (!outage.isPausing && !outage.isTrying) {
        outage.isTrying = true;
        return Promise.resolve(true);
      }
      if (isGivenUp(outage)) return Promise.resolve(false);
      return new Promise((resolve) => outage.waiting.push(resolve));
    },
    answered(site) {
      const outage = outages.peek(site);
      if (outage === undefined) return;
      outages.delete(site);
      outage.cancelPause();
      release(outage, true);
    },
    failed(site) {
      const outage = outages.peek(site);
      if (stopping.aborted) return;
      if (outage === undefined) {
        const begun: Outage = {
          ...{ since: clock.now(), pauseMs: OUTAGE_PAUSE_FIRST_MS, isTrying: false, isPausing: false },
          ...{ cancelPause: () => {}, waiting: [] },
        };
        outages.set(site, begun);
        pause(begun);
      } else if (!outage.isPausing) {
        // Of those that were under way when it began, the first has begun the pause.
        pause(outage);
      }
    },
  };
}
