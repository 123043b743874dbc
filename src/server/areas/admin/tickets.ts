import { Type } from "typebox";
import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import { unauthorized } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { ServiceKeyPrincipal } from "../../access/keys/service-keys.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { TICKET_TTL_MS, TICKETS_OF_KEY_MAX, TOKEN_BYTES } from "./limits.ts";

/** Prefix of tickets. No access token begins with it. */
const PREFIX = "ticket_";

/** Single-use tickets with which a socket authenticates as a service key, as messages of scripts must not carry the key itself. */
export class Tickets {
  readonly #clock: Clock;
  readonly #ids: Ids;
  /** Unused tickets by the name of their key, so that one key evicts no tickets of others. */
  readonly #ofKeys = new Map<string, BoundedMap<string, { key: ServiceKeyPrincipal; until: Millis }>>();

  constructor({ clock, ids }: { clock: Clock; ids: Ids }) {
    this.#clock = clock;
    this.#ids = ids;
  }

  issue(key: ServiceKeyPrincipal): string {
    const ticket = PREFIX + this.#ids.secret(TOKEN_BYTES);
    const waiting = this.#ofKeys.get(key.name) ?? new BoundedMap(TICKETS_OF_KEY_MAX);
    this.#ofKeys.set(key.name, waiting);
    waiting.set(ticket, { key, until: this.#clock.now() + TICKET_TTL_MS });
    return ticket;
  }

  /** Uses a ticket up. Returns null for a text that is not a ticket. Errors: 401 for a ticket that is unknown, used, or expired. */
  take(ticket: string): ServiceKeyPrincipal | null {
    if (!ticket.startsWith(PREFIX)) return null;
    const waiting = this.#ofKeys.values().find((tickets) => tickets.has(ticket));
    const found = waiting?.peek(ticket);
    waiting?.delete(ticket);
    if (found === undefined || found.until <= this.#clock.now()) {
      throw unauthorized("The ticket has been used, or is too old");
    }
    return found.key;
  }
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
