import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { unauthorized } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { ServiceKeyPrincipal } from "../../../access/keys/service-keys.ts";
import type { Principals } from "../../../access/principals.ts";
import { LINK_BYTES, LINK_TTL_MS, LINKS_MAX } from "../limits.ts";

/** Tickets with which a browser downloads a backup, as a link cannot carry the header of a key. */
export interface Links {
  issue(name: string, key: ServiceKeyPrincipal): { ticket: string; expiresAt: Millis };
  /** Errors: 401 for a ticket that is unknown, used, too old, or of another backup; those of `requireUsable`. */
  check(ticket: string, name: string, address: () => string): void;
  /** Uses a ticket up. Errors: those of `check`. */
  take(ticket: string, name: string, address: () => string): void;
}

export function createLinks({
  clock,
  ids,
  principals,
}: {
  clock: Clock;
  ids: Ids;
  principals: Pick<Principals, "requireUsable">;
}): Links {
  const waiting = new BoundedMap<string, { name: string; key: ServiceKeyPrincipal; until: Millis }>(LINKS_MAX);
  const links: Links = {
    issue(name, key) {
      const ticket = ids.secret(LINK_BYTES);
      const expiresAt = clock.now() + LINK_TTL_MS;
      waiting.set(ticket, { name, key, until: expiresAt });
      return { ticket, expiresAt };
    },
    check(ticket, name, address) {
      const found = waiting.peek(ticket);
      if (found?.name !== name || found.until <= clock.now()) {
        throw unauthorized("The link has been used, is too old, or is for another backup");
      }
      principals.requireUsable(found.key, address);
    },
    take(ticket, name, address) {
      try {
        links.check(ticket, name, address);
      } finally {
        waiting.delete(ticket);
      }
    },
  };
  return links;
}
