import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type {
  PresentSession,
  SessionEvents,
  SessionLookup,
  SessionState,
  UserEvents,
} from "../../../access/sessions.ts";
import type { Readable } from "../../../db/query.ts";
import { SESSIONS_IN_MEMORY_MAX } from "../limits.ts";
import { type LiveSession, liveSession } from "../statements/sessions.ts";

/**
 * The sessions in use, in memory, so that a request looks its session up without a read of the file. A session that is not in memory
 * is read once, by its primary key. A committed change reaches memory before it is acknowledged.
 */
export class SessionCache implements SessionLookup, SessionEvents, UserEvents {
  readonly #sql: Readable;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #ofUser = new Map<string, Set<string>>();
  readonly #live = new BoundedMap<string, LiveSession>(SESSIONS_IN_MEMORY_MAX, (id, session) =>
    this.#forget(id, session),
  );
  readonly #endListeners = new Set<(sessionId: string) => void>();
  readonly #changeListeners = new Set<(userId: string) => void>();

  constructor(deps: { sql: Readable; clock: Clock; logger: Logger }) {
    this.#sql = deps.sql;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  find(sessionId: string, userId: string): PresentSession | null {
    const session = this.#live.get(sessionId) ?? this.#read(sessionId);
    if (session === null || session.userId !== userId || session.expiresAt <= this.#clock.now()) return null;
    return session;
  }

  onEnd(listener: (sessionId: string) => void): () => void {
    this.#endListeners.add(listener);
    return () => this.#endListeners.delete(listener);
  }

  onUserChange(listener: (userId: string) => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  /** Called after a commit: these sessions have ended. */
  end(sessionIds: readonly string[]): void {
    for (const sessionId of sessionIds) {
      const session = this.#live.peek(sessionId);
      if (session !== undefined) this.#forget(sessionId, session);
      this.#live.delete(sessionId);
      this.#tell(this.#endListeners, sessionId);
    }
  }

  /** Called after a commit: the new state of this user's sessions. */
  update(userId: string, state: SessionState): void {
    for (const sessionId of this.#ofUser.get(userId) ?? []) {
      const session = this.#live.peek(sessionId);
      if (session !== undefined) Object.assign(session, state);
    }
    this.#tell(this.#changeListeners, userId);
  }

  /** Called after a commit: only access tokens of this version count. */
  renew(sessionId: string, tokenVersion: number): void {
    const session = this.#live.peek(sessionId);
    if (session !== undefined) session.tokenVersion = tokenVersion;
    this.#tell(this.#endListeners, sessionId);
  }

  /** Called after a commit: the session expires then. */
  extend(sessionId: string, expiresAt: Millis): void {
    const session = this.#live.peek(sessionId);
    if (session !== undefined) session.expiresAt = expiresAt;
  }

  #read(sessionId: string): LiveSession | null {
    const session = liveSession.get(this.#sql, { id: sessionId });
    if (session === null) return null;
    const ids = this.#ofUser.get(session.userId);
    if (ids === undefined) this.#ofUser.set(session.userId, new Set([sessionId]));
    else ids.add(sessionId);
    this.#live.set(sessionId, session);
    return session;
  }

  #forget(sessionId: string, session: LiveSession): void {
    const ids = this.#ofUser.get(session.userId);
    ids?.delete(sessionId);
    if (ids?.size === 0) this.#ofUser.delete(session.userId);
  }

  #tell(listeners: ReadonlySet<(id: string) => void>, id: string): void {
    for (const listener of listeners) {
      try {
        listener(id);
      } catch (cause) {
        this.#logger.error("auth: a listener of sessions failed", { cause });
      }
    }
  }
}
