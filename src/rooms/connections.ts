import type { Principal } from "../access/principal.ts";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup } from "../access/sessions.ts";
import { AppError } from "../kernel/errors.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { Release } from "../sockets/pending-places.ts";
import { CONNECTIONS_MAX } from "./limits.ts";
import type { PresentAuth } from "./types.ts";

export type UserPrincipal = Principal & { kind: "user" };

interface Connected {
  /** Its session has ended. */
  revoke(): void;
  /** The server is about to stop: what comes in from now on is not heard. */
  refuse(): void;
  /** The server stops. */
  goAway(): void;
}

export interface Connections {
  /** Errors: 503 while the server stops, and over CONNECTIONS_MAX. */
  checkRoom(): void;
  /** Counts a connection; it waits for its `auth`, and its place among those that do is released then, or at its end. */
  add(connection: Connected, release: Release): void;
  /** It has authenticated: it counts as pending no longer, and ends with its session. */
  authenticated(connection: Connected, sessionId: string): void;
  remove(connection: Connected): void;
  identify(token: string): MaybePromise<UserPrincipal>;
  /** The user as of now; null when the session has ended. */
  present(principal: UserPrincipal): UserPrincipal | null;
  /** Open connections, those that wait for their `auth` included. */
  readonly count: number;
  /** Takes no connection and no message any more. */
  refuse(): void;
  stop(): void;
}

interface Entry {
  /** Gives its place among those that wait for `auth` back. */
  release: Release;
  sessionId: string | null;
}

/** A role that an administrator sets counts at once. Decisions 6. */
export const createPresentAuth =
  (sessions: SessionLookup): PresentAuth =>
  (sessionId, auth) => {
    const session = sessions.find(sessionId, auth.id);
    if (session === null) return null;
    const { role, email, emailVerified, isAnonymous } = session;
    const isSame = role === auth.role && email === auth.email && emailVerified === auth.emailVerified;
    return isSame && isAnonymous === auth.isAnonymous ? auth : { ...auth, role, email, emailVerified, isAnonymous };
  };

/** All connections: who waits for authentication, and whose session is whose. */
export function createConnections(deps: {
  principals: Pick<Principals, "ofToken">;
  sessions: Pick<SessionEvents, "onEnd">;
  presentAuth: PresentAuth;
}): Connections {
  const entries = new Map<Connected, Entry>();
  const bySession = new Map<string, Set<Connected>>();
  let isStopping = false;

  const leaveSession = (connection: Connected, entry: Entry): void => {
    if (entry.sessionId === null) return;
    const ofSession = bySession.get(entry.sessionId);
    ofSession?.delete(connection);
    if (ofSession?.size === 0) bySession.delete(entry.sessionId);
    entry.sessionId = null;
  };
  const stopListening = deps.sessions.onEnd((sessionId) => {
    for (const connection of [...(bySession.get(sessionId) ?? [])]) connection.revoke();
  });

  return {
    checkRoom() {
      if (isStopping) throw new AppError(503, "The server is stopping");
      if (entries.size >= CONNECTIONS_MAX) throw new AppError(503, "Too many connections");
    },
    add(connection, release) {
      entries.set(connection, { release, sessionId: null });
    },
    authenticated(connection, sessionId) {
      const entry = entries.get(connection);
      if (entry === undefined) return;
      entry.release();
      leaveSession(connection, entry);
      entry.sessionId = sessionId;
      const ofSession = bySession.get(sessionId);
      if (ofSession === undefined) bySession.set(sessionId, new Set([connection]));
      else ofSession.add(connection);
    },
    remove(connection) {
      const entry = entries.get(connection);
      if (entry === undefined) return;
      entry.release();
      leaveSession(connection, entry);
      entries.delete(connection);
    },
    identify: (token) => deps.principals.ofToken(token),
    present(principal) {
      const auth = deps.presentAuth(principal.sessionId, principal.auth);
      if (auth === null || auth === principal.auth) return auth === null ? null : principal;
      return { ...principal, auth };
    },
    get count() {
      return entries.size;
    },
    refuse() {
      isStopping = true;
      for (const connection of entries.keys()) connection.refuse();
    },
    stop() {
      stopListening();
      for (const connection of [...entries.keys()]) connection.goAway();
    },
  };
}
