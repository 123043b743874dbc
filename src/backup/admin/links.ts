import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { unauthorized } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { LINK_BYTES, LINK_TTL_MS, LINKS_MAX } from "../limits.ts";

/** Tickets with which a browser downloads a backup, as a link cannot carry the header of a key. */
export interface Links {
  issue(name: string): { ticket: string; expiresAt: Millis };
  /** Uses a ticket up. Errors: 401 for one that is unknown, used, too old, or of another backup. */
  take(ticket: string, name: string): void;
}

export function createLinks({ clock, ids }: { clock: Clock; ids: Ids }): Links {
  const waiting = new BoundedMap<string, { name: string; until: Millis }>(LINKS_MAX);
  return {
    issue(name) {
      const ticket = ids.secret(LINK_BYTES);
      const expiresAt = clock.now() + LINK_TTL_MS;
      waiting.set(ticket, { name, until: expiresAt });
      return { ticket, expiresAt };
    },
    take(ticket, name) {
      const found = waiting.peek(ticket);
      waiting.delete(ticket);
      if (found?.name === name && found.until > clock.now()) return;
      throw unauthorized("The link has been used, is too old, or is for another backup");
    },
  };
}
