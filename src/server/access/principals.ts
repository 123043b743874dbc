import { AppError, unauthorized } from "../../kernel/errors.ts";
import { frozenJson } from "../../kernel/json/frozen.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Account } from "./accounts.ts";
import { ACT_AS_HEADER, actAs } from "./acting.ts";
import { InvalidServiceKey, type ServiceKeyPrincipal, type ServiceKeys } from "./keys/service-keys.ts";
import { ANONYMOUS, keyBehind, type Principal } from "./principal.ts";
import type { SessionLookup } from "./sessions.ts";
import type { AccessClaims, TokenVerifier } from "./tokens.ts";

export const SERVICE_KEY_HEADER = "x-platform-service-key";
/** The header that no page of another site can send: without it, the cookie of an administrator's session is ignored. */
export const ADMIN_HEADER = "x-platform-admin";

/** The sessions of administrators. */
export interface AdministratorSessions {
  /** Returns the key of the session in these headers. Errors: 401 without one; 403 from an address outside the key's `ips`. */
  identify(headers: Headers, address: () => string): ServiceKeyPrincipal;
  /** Redeems a single-use ticket. null: it is no ticket. Errors: 401 for a used or expired one. */
  ofTicket(ticket: string): ServiceKeyPrincipal | null;
  /** Whether the session with this id is still valid. */
  isPresent(session: string): boolean;
}

/** The session id of a user whom code of the server acts as. */
const NO_SESSION = "";

export type Principals = ReturnType<typeof createPrincipals>;

export function createPrincipals(deps: {
  serviceKeys: ServiceKeys;
  tokens: TokenVerifier;
  sessions: SessionLookup;
  /** The administrators' sessions; null: there is no dashboard. */
  administrators: () => AdministratorSessions | null;
  account: (id: string) => Account | null;
}) {
  const present = (claims: AccessClaims): Principal & { kind: "user" } => {
    const session = deps.sessions.find(claims.sessionId, claims.userId);
    if (session === null || session.tokenVersion !== claims.version) throw unauthorized("Invalid token");
    const { role, email, emailVerified, phone, isAnonymous } = session;
    const invitation = session.invitation === null ? null : frozenJson({ data: session.invitation });
    return {
      kind: "user",
      sessionId: claims.sessionId,
      tokenVersion: claims.version,
      auth: Object.freeze({
        id: claims.userId,
        email,
        emailVerified,
        phone,
        role,
        isAnonymous,
        custom: claims.custom,
        invitation,
      }),
    };
  };
  /** Identifies the caller from an access token alone, as WebSocket messages carry it. Errors: those of `ofHeaders` for a token. */
  const ofToken = (token: string): MaybePromise<Principal & { kind: "user" }> =>
    chain(deps.tokens.verify(token), present);

  /** Returns the administrators' sessions; null: the headers contain no session, or there is no dashboard. */
  const administratorsOf = (headers: Headers): AdministratorSessions | null =>
    headers.get(ADMIN_HEADER) === "1" ? deps.administrators() : null;
  /** Returns the key of the headers; null: they contain neither key nor session. */
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

  /** Whether the key behind the caller, and the session that it was signed in with, are still valid. True where there is none. */
  const isPresent = (principal: Principal): boolean => {
    const behind = keyBehind(principal);
    if (behind === null) return true;
    if (deps.serviceKeys.named(behind.key) === null) return false;
    return behind.session === undefined || deps.administrators()?.isPresent(behind.session) === true;
  };
  /**
   * Checks a key when something that it has issued is used. Errors: 401 where `isPresent` is false; 403 from an address outside its
   * `ips`.
   */
  const requireUsable = (key: ServiceKeyPrincipal, address: () => string): void => {
    if (!isPresent(key)) throw unauthorized("The session has ended");
    deps.serviceKeys.checkAddress(key.name, address);
  };
  /** Whether the user is unchanged since the caller was identified. */
  const isSame = ({ auth, sessionId, tokenVersion, actedBy }: Principal & { kind: "user" }): boolean => {
    // An actor has no session of the user's.
    if (actedBy !== undefined) return deps.account(auth.id)?.role === auth.role;
    if (sessionId === NO_SESSION) return true;
    const session = deps.sessions.find(sessionId, auth.id);
    return session?.tokenVersion === tokenVersion && session?.role === auth.role;
  };

  return {
    ofToken,
    isPresent,
    /**
     * Checks the caller after an await, such as for a body: meanwhile the session or key may have ended, a new password may have
     * invalidated the token, or the user may have another role, which no rule has evaluated. Errors: 401.
     */
    requirePresent(principal: Principal): void {
      if (!isPresent(principal)) throw new InvalidServiceKey();
      if (principal.kind === "user" && !isSame(principal)) throw unauthorized("Invalid token");
    },
    /** Returns the key of a single-use ticket. null: it is no ticket. Errors: 401; 403 from an address outside the key's `ips`. */
    ofTicket(ticket: string, address: () => string): ServiceKeyPrincipal | null {
      const keyHolder = deps.administrators()?.ofTicket(ticket) ?? null;
      if (keyHolder !== null) requireUsable(keyHolder, address);
      return keyHolder;
    },
    requireUsable,
    /**
     * Whether the headers contain a service key or an administrator's session, valid or not. If so, `ofHeaders` ignores everything
     * else: it returns a key, whom a key acts as, or an error.
     */
    showsKey: (headers: Headers): boolean => headers.has(SERVICE_KEY_HEADER) || administratorsOf(headers) !== null,
    /** Whether the headers contain a valid service key or administrator's session. */
    isKeyHolder(headers: Headers, address: () => string): boolean {
      try {
        return keyHolderOf(headers, address) !== null;
      } catch (cause) {
        if (cause instanceof AppError) return false;
        throw cause;
      }
    },
    /**
     * Identifies the caller from headers. A service key takes precedence over an administrator's session, and both over a token
     * [AC8]. Errors: 401 `Invalid service key`, `Invalid token`, `Token expired`, a session that has ended; 403 for a key used from
     * an address outside its `ips`; those of `actAs`. `address` is called only for keys with `ips`.
     */
    ofHeaders(headers: Headers, address: () => string): MaybePromise<Principal> {
      const caller = callerOf(headers, address);
      const target = headers.get(ACT_AS_HEADER);
      return target === null ? caller : chain(caller, (principal) => actAs(principal, target, deps.account));
    },
  };
}
