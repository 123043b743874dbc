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

/** The sessions of administrators: each stands for the service key that it was opened with. */
export interface Sessions {
  /** Resolves to the session's token, once the session is on disk. */
  open(key: ServiceKeyPrincipal): Promise<string>;
  /**
   * The key of a session, which counts as used now. null: unknown, ended, or its key has been replaced or has expired.
   * Errors: 403 where the key may not be used from this address.
   */
  use(token: string, address: () => string): ServiceKeyPrincipal | null;
  /** Whether the session with this id can be used. */
  isPresent(id: string): boolean;
  /** Resolves when it cannot be used any more, also after a crash. An unknown token is none, and writes nothing. */
  end(token: string): Promise<void>;
}

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

/** What administrators sign in to, in the audit log. */
export const AUDIT_TARGET = "admin";

/** The database has no token, so that who reads a backup cannot sign in. */
const idOf = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64url");

export function createSessions(deps: SessionDeps): Sessions {
  const { file, serviceKeys, clock } = deps;
  // They are few and few servers have any, so all of them are read, by the first request that shows one.
  let known: Map<string, Session> | null = null;
  const sessions = (): Map<string, Session> => {
    known ??= readSessions(deps);
    return known;
  };
  const isOver = ({ lastUsedAt, expiresAt }: Session, now: Millis): boolean =>
    expiresAt <= now || lastUsedAt + SESSION_IDLE_MS <= now;

  const find = (id: string): Session | null => {
    const session = sessions().get(id);
    if (session === undefined) return null;
    if (!isOver(session, clock.now()) && serviceKeys.named(session.principal.name) !== null) return session;
    sessions().delete(id);
    return null;
  };
  const save = (id: string, lastUsedAt: Millis): void => {
    file
      .write((tx) => touchSession.run(tx, { id, lastUsedAt }))
      .catch((cause) => deps.logger.error("The use of an administrator's session was not saved", { cause }));
  };
  /** Those of the key that make room for another one, used longest ago: several where some were opened at the same time. */
  const leastUsed = (name: string): string[] =>
    [...sessions()]
      .filter(([, { principal }]) => principal.name === name)
      .sort(([, a], [, b]) => b.lastUsedAt - a.lastUsedAt)
      .slice(SESSIONS_OF_KEY_MAX - 1)
      .map(([id]) => id);

  return {
    async open(key) {
      const token = deps.ids.secret(TOKEN_BYTES);
      const id = idOf(token);
      const now = clock.now();
      const stamp = serviceKeys.stampOf(key.name) ?? "";
      const times = { lastUsedAt: now, expiresAt: now + SESSION_TTL_MS };
      const displaced = leastUsed(key.name);
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
      for (const other of displaced) sessions().delete(other);
      sessions().set(id, { ...times, principal: { ...key, session: id }, savedAt: now });
      return token;
    },
    use(token, address) {
      const id = idOf(token);
      const session = find(id);
      if (session === null) return null;
      serviceKeys.checkAddress(session.principal.name, address);
      const now = clock.now();
      session.lastUsedAt = now;
      if (now - session.savedAt >= USE_SAVED_EVERY_MS) {
        session.savedAt = now;
        save(id, now);
      }
      return session.principal;
    },
    isPresent: (id) => find(id) !== null,
    async end(token) {
      const id = idOf(token);
      const session = sessions().get(id);
      // Anybody can send a token that is none: it costs no write.
      if (session === undefined) return;
      sessions().delete(id);
      const actor = { kind: "admin", name: session.principal.name } as const;
      await file.write((tx) => {
        deleteSession.run(tx, { id });
        tx.auditBy(actor, { action: "signout", target: AUDIT_TARGET });
      });
    },
  };
}

/** Those of keys that have been replaced since are left out. */
function readSessions({ file, serviceKeys, clock }: SessionDeps): Map<string, Session> {
  const sessions = new Map<string, Session>();
  for (const { id, key, stamp, lastUsedAt, expiresAt } of liveSessions.all(file, { now: clock.now() })) {
    const principal = serviceKeys.named(key);
    if (principal === null || serviceKeys.stampOf(key) !== stamp) continue;
    sessions.set(id, { principal: { ...principal, session: id }, lastUsedAt, savedAt: lastUsedAt, expiresAt });
  }
  return sessions;
}
