import { Type } from "typebox";
import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import { unauthorized } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { ServiceKeyPrincipal } from "../../access/keys/service-keys.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { TICKET_TTL_MS, TICKETS_OF_KEY_MAX, TOKEN_BYTES } from "./limits.ts";

/** No access token begins so. */
const PREFIX = "ticket_";

/** What a socket authenticates with as a service key: messages of scripts must not carry the key itself. */
export interface Tickets {
  issue(key: ServiceKeyPrincipal): string;
  /** Uses a ticket up. null: it is none. Errors: 401 for one that has been used, or is too old. */
  take(ticket: string): ServiceKeyPrincipal | null;
}

export function createTickets({ clock, ids }: { clock: Clock; ids: Ids }): Tickets {
  /** By the name of the key, so that one key ends no tickets of others. */
  const ofKeys = new Map<string, BoundedMap<string, { key: ServiceKeyPrincipal; until: Millis }>>();
  return {
    issue(key) {
      const ticket = PREFIX + ids.secret(TOKEN_BYTES);
      const waiting = ofKeys.get(key.name) ?? new BoundedMap(TICKETS_OF_KEY_MAX);
      ofKeys.set(key.name, waiting);
      waiting.set(ticket, { key, until: clock.now() + TICKET_TTL_MS });
      return ticket;
    },
    take(ticket) {
      if (!ticket.startsWith(PREFIX)) return null;
      const waiting = ofKeys.values().find((tickets) => tickets.has(ticket));
      const found = waiting?.peek(ticket);
      waiting?.delete(ticket);
      if (found === undefined || found.until <= clock.now())
        throw unauthorized("The ticket has been used, or is too old");
      return found.key;
    },
  };
}

export const ticketEndpoint = (tickets: Tickets): Endpoint =>
  endpoint(
    "POST /api/admin/socket-ticket",
    {
      tag: "Administration",
      summary: "Get a ticket with which a socket authenticates as a service key",
      description: "It is the `token` of the first `auth` message on `/api/realtime`, once, within 30 seconds.",
      caller: "serviceKey",
      place: "core",
      answers: { 200: Type.Object({ ticket: Type.String() }) },
    },
    ({ principal, query }) => {
      query();
      // The server itself makes no requests.
      return { ticket: tickets.issue(principal as ServiceKeyPrincipal) };
    },
  );
