import type { Clock } from "../../../kernel/clock.ts";
import { unauthorized } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { ServiceKeys } from "../../access/keys/service-keys.ts";
import type { AdministratorSessions } from "../../access/principals.ts";
import type { DatabaseFile } from "../../db/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { createRateLimiter } from "../../http/rate-limit.ts";
import { sessionEndpoints } from "./endpoints.ts";
import { SIGN_IN_FAILURES } from "./limits.ts";
import { pageEndpoints } from "./pages.ts";
import { AUDIT_TARGET, Sessions } from "./sessions.ts";
import { createSignIn, SessionCookie } from "./sign-in.ts";
import { Tickets, ticketEndpoint } from "./tickets.ts";

export interface AdminArea {
  endpoints: readonly Endpoint[];
  /** Sessions of administrators; null if the config has `admin: false`. */
  sessions: AdministratorSessions | null;
}

/** Creates the admin area: what the dashboard needs besides the endpoints of other areas. Rules: SPEC.md. */
export function createAdminArea(deps: {
  isEnabled: boolean;
  file: DatabaseFile;
  dataDirectory: string;
  secret: string;
  serviceKeys: ServiceKeys;
  publicUrl: () => string;
  audit: { failed(target: string, about: object): Promise<void> };
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): AdminArea {
  if (!deps.isEnabled) return { endpoints: [], sessions: null };
  const isHttps = (): boolean => deps.publicUrl().startsWith("https:");
  const cookie = new SessionCookie(deps.secret, isHttps);
  const failures = createRateLimiter(SIGN_IN_FAILURES, deps.clock);
  const sessions = new Sessions(deps);
  const tickets = new Tickets(deps);
  const isSecure = ({ url }: Request): boolean => url.startsWith("https:") || isHttps();
  return {
    endpoints: [
      ...sessionEndpoints({
        signIn: createSignIn({ ...deps, failures, failed: (way) => deps.audit.failed(AUDIT_TARGET, { way }) }),
        sessions,
        cookie,
        failures,
        isSecure,
      }),
      ticketEndpoint(tickets),
      ...pageEndpoints(),
    ],
    sessions: {
      ofTicket: (ticket) => tickets.take(ticket),
      isPresent: (id) => sessions.isPresent(id),
      identify(headers, address) {
        for (const token of cookie.read(headers)) {
          const key = sessions.use(token, address);
          if (key !== null) return key;
        }
        throw unauthorized("The administrator's session has ended; sign in again");
      },
    },
  };
}
