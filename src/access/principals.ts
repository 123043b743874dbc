import { unauthorized } from "../kernel/errors.ts";
import { chain, type MaybePromise } from "../kernel/maybe-promise.ts";
import { ANONYMOUS, type Principal } from "./principal.ts";
import type { ServiceKeys } from "./service-keys.ts";
import type { SessionLookup } from "./sessions.ts";
import type { AccessClaims, TokenVerifier } from "./tokens.ts";

export const SERVICE_KEY_HEADER = "x-platform-service-key";

export interface Principals {
  /**
   * The caller that these headers identify. A service key takes precedence over a token [AC8]. Errors: 401 `Invalid service
   * key`, `Invalid token`, `Token expired`; 403 for a key used from an address outside its `ips`. `address` is called only
   * for keys with `ips`.
   */
  ofHeaders(headers: Headers, address: () => string): MaybePromise<Principal>;
  /** The same for an access token alone, as WebSocket messages carry it. */
  ofToken(token: string): MaybePromise<Principal & { kind: "user" }>;
}

export function createPrincipals(deps: {
  serviceKeys: ServiceKeys;
  tokens: TokenVerifier;
  sessions: SessionLookup;
}): Principals {
  const present = (claims: AccessClaims): Principal & { kind: "user" } => {
    const session = deps.sessions.find(claims.sessionId, claims.userId);
    if (session === null || session.tokenVersion !== claims.version) throw unauthorized("Invalid token");
    const { role, email, emailVerified, isAnonymous } = session;
    return {
      kind: "user",
      sessionId: claims.sessionId,
      auth: { id: claims.userId, email, emailVerified, role, isAnonymous, custom: claims.custom },
    };
  };
  const ofToken = (token: string) => chain(deps.tokens.verify(token), present);

  return {
    ofToken,
    ofHeaders(headers, address) {
      const key = headers.get(SERVICE_KEY_HEADER);
      if (key !== null) return deps.serviceKeys.identify(key, address);
      const authorization = headers.get("authorization");
      if (authorization === null) return ANONYMOUS;
      if (!/^bearer /i.test(authorization)) throw unauthorized("Invalid token");
      return ofToken(authorization.slice("bearer ".length).trim());
    },
  };
}
