import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { SILENCE_REST_MS, SILENCES_BEFORE_REST, SILENT_SITES_MAX } from "../limits.ts";

/**
 * Push services that do not answer. Users can register subscriptions of a host that never answers, under any number of names:
 * without this, each of them would delay a broadcast by the whole timeout. [PU35]
 */
export interface Silences {
  /** Whether the site of the host is not called at present. */
  isResting(hostname: string): boolean;
  /** The host has answered. */
  answered(hostname: string): void;
  /** A call has timed out. */
  silent(hostname: string): void;
}

export function createSilences(clock: Clock): Silences {
  const sites = new BoundedMap<string, { count: number; restsUntil: Millis }>(SILENT_SITES_MAX);

  return {
    isResting: (hostname) => clock.now() < (sites.get(siteOf(hostname))?.restsUntil ?? 0),
    answered: (hostname) => void sites.delete(siteOf(hostname)),
    silent(hostname) {
      const site = siteOf(hostname);
      const count = (sites.get(site)?.count ?? 0) + 1;
      sites.set(site, { count, restsUntil: count < SILENCES_BEFORE_REST ? 0 : clock.now() + SILENCE_REST_MS });
    },
  };
}

/** The last two labels of the name, as subdomains are free to create; an address is its own site. */
export function siteOf(hostname: string): string {
  return /^\[|^[\d.]+$/.test(hostname) ? hostname : hostname.replace(/\.$/, "").split(".").slice(-2).join(".");
}
