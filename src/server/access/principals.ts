import { AppError, unauthorized } from "../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Account } from "./accounts.ts";
import { ACT_AS_HEADER, actAs } from "./acting.ts";
import { InvalidServiceKey, type ServiceKeyPrincipal, type ServiceKeys } from "./keys/service-keys.ts";
import { ANONYMOUS, keyBehind, type Principal } from "./principal.ts";
import type { SessionLookup } from "./sessions.ts";
import type { AccessClaims, TokenVerifier } from "./tokens.ts";

export const SERVICE_KEY_HEADER = "x-platform-service-key";
/** No page of another site can send it: without it, the cookie of an administrator's session counts for nothing. */
export const ADMIN_HEADER = "x-platform-admin";

/** The sessions of administrators. */
export interface AdministratorSessions {
  /** The key of the session that these headers show. Errors: 401 without one; 403 from an address outside the key's `ips`. */
  identify(headers: Headers, address: () => string): ServiceKeyPrincipal;
  /** Uses a ticket up. null: it is no ticket. Errors: 401 for one that has been used, or is too old. */
  ofTicket(ticket: string): ServiceKeyPrincipal | null;
  /** Whether the session with this id goes on. */
  isPresent(session: string): boolean;
}

/** The session of a user whom code of the server acts as. */
const NO_SESSION = "";

export interface Principals {
  /**
   * The caller that these headers identify. A service key takes precedence over an administrator's session, and both over a
   * token [AC8]. Errors: 401 `Invalid service key`, `Invalid token`, `Token expired`, a session that has ended; 403 for a key
   * used from an address outside its `ips`; those of `actAs`. `address` is called only for keys with `ips`.
   */
  ofHeaders(headers: Headers, address: () => string): MaybePromise<Principal>;
  /**
   * Whether they show a service key or an administrator's session, valid or not. If so, `ofHeaders` looks at nothing else: it
   * gives a key, whom a key acts as, or an error.
   */
  showsKey(headers: Headers): boolean;
  /** Whether they show a service key, or an administrator's session, that is valid. */
  isKeyHolder(headers: Headers, address: () => string): boolean;
  /** The same for an access token alone, as WebSocket messages carry it. */
  ofToken(token: string): MaybePromise<Principal & { kind: "user" }>;
  /** The key of a ticket, which counts once. null: it is no ticket. Errors: 401; 403 from an address outside the key's `ips`. */
  ofTicket(ticket: string, address: () => string): ServiceKeyPrincipal | null;
  /** For what a key has handed out, at its use. Errors: 401 where `isPresent` is false; 403 from an address outside its `ips`. */
  requireUsable(key: ServiceKeyPrincipal, address: () => string): void;
  /** Whether the key behind the caller, and the session that it was signed in with, still count. True where there is none. */
  isPresent(principal: Principal): boolean;
  /**
   * For what goes on after something was awaited, such as a body: the session or key may have ended meanwhile, a new password may
   * have ended the token, or the user may have another role, of which no rule has been asked. Errors: 401.
   */
  requirePresent(principal: Principal): void;
}

export function createPrincipals(deps: {
  serviceKeys: ServiceKeys;
  tokens: TokenVerifier;
  sessions: SessionLookup;
  /** null: there is no dashboard. */
  administrators: () => AdministratorSessions | null;
  account: (id: string) => Account | null;
}): Principals {
  const present = (claims: AccessClaims): Principal & { kind: "user" } => {
    const session = deps.sessions.find(claims.sessionId, claims.userId);
    if (session === null || session.tokenVersion !== claims.version) throw unauthorized("Invalid token");
    const { role, email, emailVerified, isAnonymous } = session;
    return {
      kind: "user",
      sessionId: claims.sessionId,
      tokenVersion: claims.version,
      auth: Object.freeze({ id: claims.userId, email, emailVerified, role, isAnonymous, custom: claims.custom }),
    };
  };
  const ofToken = (token: string) => chain(deps.tokens.verify(token), present);

  /** null: they show no session, or there is no dashboard. */
  const administratorsOf = (headers: Headers): AdministratorSessions | null =>
    headers.get(ADMIN_HEADER) === "1" ? deps.administrators() : null;
  /** null: they show neither. */
  const keyHolderOf = (headers: Headers, address: () => string): ServiceKeyPrincipal | null => {
    const key = headers.get(SERVICE_KEY_HEADER);
    if (key !== null) return deps.serviceKeys.identify(key, address);
    return administratorsOf(headers)?.identify(headers, address) ?? null;
  };
  const callerOf = (headers: Headers, address: () => string): MaybePromise<Principal> => {
    const keyHolder = keyHolderOf(headers, address);
    if (keyHolder !== null) return keyHolder;
    const authorization = headers.get("authorization");
    if (authorization === null) return ANONYMOUS;
    if (!/^bearer /i.test(authorization)) throw unauthorized("Invalid token");
    return ofToken(authorization.slice("bearer ".length).trim());
  };

  const isPresent: Principals["isPresent"] = (principal) => {
    const behind = keyBehind(principal);
    if (behind === null) return true;
    if (deps.serviceKeys.named(behind.key) === null) return false;
    return behind.session === undefined || deps.administrators()?.isPresent(behind.session) === true;
  };
  const requireUsable: Principals["requireUsable"] = (key, address) => {
    if (!isPresent(key)) throw unauthorized("The session has ended");
    deps.serviceKeys.checkAddress(key.name, address);
  };
  /** Whether the user is still who the caller was. */
  const isSame = ({ auth, sessionId, tokenVersion, actedBy }: Principal & { kind: "user" }): boolean => {
    // Whoever acts as a user has no session of theirs.
    if (actedBy !== undefined) return deps.account(auth.id)?.role === auth.role;
    if (sessionId === NO_SESSION) return true;
    const session = deps.sessions.find(sessionId, auth.id);
    return session?.tokenVersion === tokenVersion && session?.role === auth.role;
  };

  return {
    ofToken,
    isPresent,
    requirePresent(principal) {
      if (!isPresent(principal)) throw new InvalidServiceKey();
      if (principal.kind === "user" && !isSame(principal)) throw unauthorized("Invalid token");
    },
    ofTicket(ticket, address) {
      const keyHolder = deps.administrators()?.ofTicket(ticket) ?? null;
      if (keyHolder !== null) requireUsable(keyHolder, address);
      return keyHolder;
    },
    requireUsable,
    showsKey: (headers) => headers.has(SERVICE_KEY_HEADER) || administratorsOf(headers) !== null,
    isKeyHolder(headers, address) {
      try {
        return keyHolderOf(headers, address) !== null;
      } catch (cause) {
        if (cause instanceof AppError) return false;
        throw cause;
      }
    },
    ofHeaders(headers, address) {
      const caller = callerOf(headers, address);
      const target = headers.get(ACT_AS_HEADER);
      return target === null ? caller : chain(caller, (principal) => actAs(principal, target, deps.account));
    },
  };
}
