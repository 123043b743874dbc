import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { SessionEvents, SessionLookup, SessionState, UserEvents } from "../../../access/sessions.ts";
import type { Readable } from "../../../db/query.ts";
import { SESSIONS_IN_MEMORY_MAX } from "../limits.ts";
import { type LiveSession, liveSession } from "../statements/sessions.ts";

export interface SessionCache extends SessionLookup, SessionEvents, UserEvents {
  /** After a commit: these sessions have ended. */
  end(sessionIds: readonly string[]): void;
  /** After a commit: the new state of this user's sessions. */
  update(userId: string, state: SessionState): void;
  /** After a commit: only access tokens of this version count. */
  renew(sessionId: string, tokenVersion: number): void;
  /** After a commit: the session expires then. */
  extend(sessionId: string, expiresAt: Millis): void;
}

/**
 * The sessions in use, in memory: a look-up is one Map access. A session that is not in memory is read once, by its primary
 * key. A committed change reaches memory before it is acknowledged.
 */
export function createSessionCache(deps: { sql: Readable; clock: Clock; logger: Logger }): SessionCache {
  const ofUser = new Map<string, Set<string>>();
  const forget = (sessionId: string, session: LiveSession): void => {
    const ids = ofUser.get(session.userId);
    ids?.delete(sessionId);
    if (ids?.size === 0) ofUser.delete(session.userId);
  };
  const live = new BoundedMap<string, LiveSession>(SESSIONS_IN_MEMORY_MAX, forget);
  const endListeners = new Set<(sessionId: string) => void>();
  const changeListeners = new Set<(userId: string) => void>();
  const tell = (listeners: ReadonlySet<(id: string) => void>, id: string): void => {
    for (const listener of listeners) {
      try {
        listener(id);
      } catch (cause) {
        deps.logger.error("A listener of sessions failed", { cause });
      }
    }
  };

  const read = (sessionId: string): LiveSession | null => {
    const session = liveSession.get(deps.sql, { id: sessionId });
    if (session === null) return null;
    const ids = ofUser.get(session.userId);
    if (ids === undefined) ofUser.set(session.userId, new Set([sessionId]));
    else ids.add(sessionId);
    live.set(sessionId, session);
    return session;
  };

  return {
    find(sessionId, userId) {
      const session = live.get(sessionId) ?? read(sessionId);
      if (session === null || session.userId !== userId || session.expiresAt <= deps.clock.now()) return null;
      return session;
    },
    onEnd(listener) {
      endListeners.add(listener);
      return () => endListeners.delete(listener);
    },
    onUserChange(listener) {
      changeListeners.add(listener);
      return () => changeListeners.delete(listener);
    },
    end(sessionIds) {
      for (const sessionId of sessionIds) {
        const session = live.peek(sessionId);
        if (session !== undefined) forget(sessionId, session);
        live.delete(sessionId);
        tell(endListeners, sessionId);
      }
    },
    update(userId, state) {
      for (const sessionId of ofUser.get(userId) ?? []) {
        const session = live.peek(sessionId);
        if (session !== undefined) Object.assign(session, state);
      }
      tell(changeListeners, userId);
    },
    renew(sessionId, tokenVersion) {
      const session = live.peek(sessionId);
      if (session !== undefined) session.tokenVersion = tokenVersion;
      tell(endListeners, sessionId);
    },
    extend(sessionId, expiresAt) {
      const session = live.peek(sessionId);
      if (session !== undefined) session.expiresAt = expiresAt;
    },
  };
}
