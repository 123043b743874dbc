import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { SILENCE_REST_MS, SILENCES_BEFORE_REST, SILENT_SITES_MAX } from "../limits.ts";

/**
 * Which push services do not answer. Anybody can register subscriptions of a host that is silent on purpose, under as many
 * names as they like: without this each would hold up a broadcast for the whole timeout. [PU35]
 */
export interface Silences {
  /** Whether the host's site is left alone for now. */
  isResting(hostname: string): boolean;
  /** It took a connection and said something. */
  answered(hostname: string): void;
  /** Its time was over. */
  silent(hostname: string): void;
}

export function createSilences(clock: Clock): Silences {
  const sites = new BoundedMap<string, { count: number; restsUntil: Millis }>(SILENT_SITES_MAX);

  return {
    isResting: (hostname) => clock.now() < (sites.peek(siteOf(hostname))?.restsUntil ?? 0),
    answered: (hostname) => void sites.delete(siteOf(hostname)),
    silent(hostname) {
      const site = siteOf(hostname);
      const count = (sites.get(site)?.count ?? 0) + 1;
      sites.set(site, { count, restsUntil: count < SILENCES_BEFORE_REST ? 0 : clock.now() + SILENCE_REST_MS });
    },
  };
}

/** The last two labels, below which names cost nothing; an address is its own site. */
export function siteOf(hostname: string): string {
  return /^\[|^[\d.]+$/.test(hostname) ? hostname : hostname.replace(/\.$/, "").split(".").slice(-2).join(".");
}
