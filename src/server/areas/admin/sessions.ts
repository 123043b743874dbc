import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { ServiceKeyPrincipal, ServiceKeys } from "../../access/keys/service-keys.ts";
import type { DatabaseFile } from "../../db/types.ts";
import { SESSION_IDLE_MS, SESSION_TTL_MS, SESSIONS_OF_KEY_MAX, TOKEN_BYTES, USE_SAVED_EVERY_MS } from "./limits.ts";
import {
  deleteExpiredSessions,
  deleteSession,
  insertSession,
  liveSessions,
  touchSession,
} from "./statements/sessions.ts";

interface Session {
  principal: ServiceKeyPrincipal;
  lastUsedAt: Millis;
  savedAt: Millis;
  expiresAt: Millis;
}

interface SessionDeps {
  file: DatabaseFile;
  serviceKeys: ServiceKeys;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** Target of sign-ins of administrators in the audit log. */
export const AUDIT_TARGET = "admin";

/** Returns the id of a session: the hash of its token. The token is not stored, so a reader of a backup cannot sign in. */
const idOf = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64url");

/** Sessions of administrators. Each has the rights of the service key that opened it. */
export class Sessions {
  readonly #deps: SessionDeps;
  /** All sessions by id, as there are few; null until the first request with a token, as few servers have any. */
  #known: Map<string, Session> | null = null;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Opens a session. Resolves to its token, once the session is on disk. */
  async open(key: ServiceKeyPrincipal): Promise<string> {
    const { file, serviceKeys, clock, ids } = this.#deps;
    const token = ids.secret(TOKEN_BYTES);
    const id = idOf(token);
    const now = clock.now();
    const stamp = serviceKeys.stampOf(key.name) ?? "";
    const times = { lastUsedAt: now, expiresAt: now + SESSION_TTL_MS };
    const displaced = this.#leastUsed(key.name);
    const actor = { kind: "admin", name: key.name } as const;
    await file.write((tx) => {
      deleteExpiredSessions.run(tx, { now });
      for (const other of displaced) {
        deleteSession.run(tx, { id: other });
        tx.auditBy(actor, { action: "signout", target: AUDIT_TARGET, after: { reason: "displaced" } });
      }
      insertSession.run(tx, { id, key: key.name, stamp, ...times });
      tx.auditBy(actor, { action: "signin", target: AUDIT_TARGET });
    });
    for (const other of displaced) this.#sessions().delete(other);
    this.#sessions().set(id, { ...times, principal: { ...key, session: id }, savedAt: now });
    return token;
  }

  /**
   * Returns the key of a session, which counts as used now; null if the session is unknown or has ended, or its key has been
   * replaced or has expired. Errors: 403 if the key may not be used from this address.
   */
  use(token: string, address: () => string): ServiceKeyPrincipal | null {
    const id = idOf(token);
    const session = this.#find(id);
    if (session === null) return null;
    this.#deps.serviceKeys.checkAddress(session.principal.name, address);
    const now = this.#deps.clock.now();
    session.lastUsedAt = now;
    if (now - session.savedAt >= USE_SAVED_EVERY_MS) {
      session.savedAt = now;
      this.#save(id, now);
    }
    return session.principal;
  }

  /** Whether the session with this id can be used. */
  isPresent(id: string): boolean {
    return this.#find(id) !== null;
  }

  /** Ends a session. Resolves when it can no longer be used, also after a crash. */
  async end(token: string): Promise<void> {
    const id = idOf(token);
    const session = this.#sessions().get(id);
    // Anybody can send an invalid token, so it must cost no write.
    if (session === undefined) return;
    this.#sessions().delete(id);
    const actor = { kind: "admin", name: session.principal.name } as const;
    await this.#deps.file.write((tx) => {
      deleteSession.run(tx, { id });
      tx.auditBy(actor, { action: "signout", target: AUDIT_TARGET });
    });
  }

  #sessions(): Map<string, Session> {
    this.#known ??= readSessions(this.#deps);
    return this.#known;
  }

  #find(id: string): Session | null {
    const session = this.#sessions().get(id);
    if (session === undefined) return null;
    const { clock, serviceKeys } = this.#deps;
    if (!isOver(session, clock.now()) && serviceKeys.named(session.principal.name) !== null) return session;
    this.#sessions().delete(id);
    return null;
  }

  #save(id: string, lastUsedAt: Millis): void {
    const { file, logger } = this.#deps;
    file
      .write((tx) => touchSession.run(tx, { id, lastUsedAt }))
      .catch((cause) => logger.error("admin: the last use of a session could not be saved", { cause }));
  }

  /** Lists the key's least recently used sessions, to evict for a new one: several if some were opened at the same time. */
  #leastUsed(name: string): string[] {
    return [...this.#sessions()]
      .filter(([, { principal }]) => principal.name === name)
      .sort(([, a], [, b]) => b.lastUsedAt - a.lastUsedAt)
      .slice(SESSIONS_OF_KEY_MAX - 1)
      .map(([id]) => id);
  }
}

const isOver = ({ lastUsedAt, expiresAt }: Session, now: Millis): boolean =>
  expiresAt <= now || lastUsedAt + SESSION_IDLE_MS <= now;

/** Reads the sessions from disk, without those of keys that have been replaced since. */
function readSessions({ file, serviceKeys, clock }: SessionDeps): Map<string, Session> {
  const sessions = new Map<string, Session>();
  for (const { id, key, stamp, lastUsedAt, expiresAt } of liveSessions.all(file, { now: clock.now() })) {
    const principal = serviceKeys.named(key);
    if (principal === null || serviceKeys.stampOf(key) !== stamp) continue;
    sessions.set(id, { principal: { ...principal, session: id }, lastUsedAt, savedAt: lastUsedAt, expiresAt });
  }
  return sessions;
}
