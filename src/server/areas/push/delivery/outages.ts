import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { OUTAGE_MAX_MS, OUTAGE_PAUSE_FIRST_MS, OUTAGE_PAUSE_MAX_MS, OUTAGE_SITES_MAX } from "../limits.ts";

/**
 * Push services that are unavailable. Messages to them wait; after a pause that grows, one message is tried, and its answer
 * releases the others. After OUTAGE_MAX_MS without an answer the waiting and all new messages fail, except for one that is
 * tried after each pause. [PU100]
 */
export interface Outages {
  /** Whether a message would have to wait. */
  isPaused(site: string): boolean;
  /** Resolves when a message to the site may be tried; false: the message has failed, `patience` is aborted, or the server stops. */
  turn(site: string, patience: AbortSignal): Promise<boolean>;
  answered(site: string): void;
  failed(site: string): void;
}

interface Outage {
  readonly since: Millis;
  pauseMs: number;
  /** One message is being tried. */
  isTrying: boolean;
  /** The pause has not ended. */
  isPausing: boolean;
  cancelPause: () => void;
  waiting: Set<(isGo: boolean) => void>;
}

export function createOutages(clock: Clock, stopping: AbortSignal): Outages {
  const release = (outage: Outage, isGo: boolean): void => {
    for (const go of outage.waiting) go(isGo);
  };
  const outages = new BoundedMap<string, Outage>(OUTAGE_SITES_MAX, (_site, outage) => {
    outage.cancelPause();
    release(outage, true);
  });
  const isOverdue = (outage: Outage): boolean => clock.now() - outage.since >= OUTAGE_MAX_MS;
  const pause = (outage: Outage): void => {
    outage.isTrying = false;
    outage.isPausing = true;
    if (isOverdue(outage)) release(outage, false);
    outage.cancelPause = clock.after(outage.pauseMs, () => {
      outage.isPausing = false;
      const [first] = outage.waiting;
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
    turn(site, patience) {
      const outage = outages.get(site);
      if (stopping.aborted || patience.aborted) return Promise.resolve(false);
      if (outage === undefined) return Promise.resolve(true);
      if (!outage.isPausing && !outage.isTrying) {
        outage.isTrying = true;
        return Promise.resolve(true);
      }
      if (isOverdue(outage)) return Promise.resolve(false);
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
          since: clock.now(),
          pauseMs: OUTAGE_PAUSE_FIRST_MS,
          isTrying: false,
          isPausing: false,
          cancelPause: () => {},
          waiting: new Set(),
        };
        outages.set(site, begun);
        pause(begun);
      } else if (!outage.isPausing) {
        // Further calls that were running when the outage began do not start another pause.
        pause(outage);
      }
    },
  };
}
