import type { Account, AccountEvents } from "../access/accounts.ts";
import type { DatabaseFile, Sync, Transaction } from "../db/types.ts";
import type { Clock, Millis } from "../kernel/clock.ts";
import { AppError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { type NewUser, userValues } from "./new-user.ts";
import type { SessionCache } from "./session/cache.ts";
import { deleteSecretsFor } from "./statements/secrets.ts";
import { deleteOtherSessions, deleteSessionsOfUser, sessionById } from "./statements/sessions.ts";
import { deleteUser, insertUser, type SecretAccount, updateUser, userById } from "./statements/users.ts";

/** Absent and undefined members stay. */
export type UserChanges = {
  [Field in keyof Omit<SecretAccount, "seq" | "id" | "createdAt" | "updatedAt">]?: SecretAccount[Field] | undefined;
};

/**
 * One write to the accounts. What it does to sessions is collected, and reaches memory and listeners once it is on disk
 * and before anybody is answered.
 */
export interface AccountWrite {
  readonly tx: Transaction;
  readonly now: Millis;
  /** Neither the id nor the email is taken: the caller has made sure. */
  insert(user: NewUser): SecretAccount;
  /** Changes the user, and what the user's sessions say. The user exists. */
  update(userId: string, changes: UserChanges): SecretAccount;
  delete(userId: string): void;
  /** Says that these rows are gone. */
  ended(sessionIds: readonly string[]): void;
  extended(sessionId: string, expiresAt: Millis): void;
  /** Says that access tokens of an earlier version count no longer; sockets that were opened with one are closed. */
  renewed(sessionId: string, tokenVersion: number): void;
  /**
   * Ends all sessions of the user but one, and with them what such a session has begun and what needs none to be finished:
   * a sign-in that is half done, and a change of the address.
   */
  endSessions(userId: string, options: { except: string | null }): void;
}

export interface AccountFile extends AccountEvents {
  readonly sql: DatabaseFile;
  write<T>(work: (write: AccountWrite) => Sync<T>): Promise<T>;
  /** The user of a live session, as of now. Errors: thrown by the caller. null: it has ended meanwhile. */
  current(write: AccountWrite, userId: string, sessionId: string): SecretAccount | null;
}

type Effect = (sessions: SessionCache) => void;

const stateOf = ({ role, email, emailVerified, isAnonymous }: Account) => ({ role, email, emailVerified, isAnonymous });

export function createAccountFile(deps: {
  file: DatabaseFile;
  sessions: SessionCache;
  clock: Clock;
  logger: Logger;
}): AccountFile {
  const deletions = new Set<(userId: string) => void>();

  const announceDeletion = (userId: string): void => {
    for (const listener of deletions) {
      try {
        listener(userId);
      } catch (cause) {
        deps.logger.error("A listener of deleted users failed", { cause, userId });
      }
    }
  };

  const begin = (tx: Transaction, effects: Effect[]): AccountWrite => {
    const now = deps.clock.now();
    const ended = (sessionIds: readonly string[]): void => {
      if (sessionIds.length > 0) effects.push((sessions) => sessions.end(sessionIds));
    };
    const endSessions = (userId: string, except: string | null): void => {
      const rows =
        except === null
          ? deleteSessionsOfUser.all(tx, { userId })
          : deleteOtherSessions.all(tx, { userId, id: except });
      ended(rows.map(({ id }) => id));
    };
    return {
      tx,
      now,
      ended,
      insert(user) {
        const account = insertUser.get(tx, userValues(user, now));
        if (account === null) throw new Error("INSERT RETURNING gave no row");
        return account;
      },
      update(userId, changes) {
        const present = userById.get(tx, { id: userId });
        if (present === null) throw new Error(`user ${userId} vanished within a transaction`);
        const given = Object.entries(changes).filter(([, value]) => value !== undefined);
        const account: SecretAccount = { ...present, ...Object.fromEntries(given), updatedAt: now };
        updateUser.run(tx, account);
        effects.push((sessions) => sessions.update(userId, stateOf(account)));
        return account;
      },
      delete(userId) {
        endSessions(userId, null);
        deleteUser.run(tx, { id: userId });
        effects.push(() => announceDeletion(userId));
      },
      extended(sessionId, expiresAt) {
        effects.push((sessions) => sessions.extend(sessionId, expiresAt));
      },
      renewed(sessionId, tokenVersion) {
        effects.push((sessions) => sessions.renew(sessionId, tokenVersion));
      },
      endSessions(userId, { except }) {
        endSessions(userId, except);
        for (const purpose of ["mfa-ticket", "email-change"] as const) deleteSecretsFor.run(tx, { userId, purpose });
      },
    };
  };

  return {
    sql: deps.file,
    // The effects hang on the write's own promise and nothing else, so that they run in the order of commits.
    write<T>(work: (write: AccountWrite) => Sync<T>): Promise<T> {
      const effects: Effect[] = [];
      return deps.file
        .write<{ result: Sync<T> }>((tx) => {
          effects.length = 0;
          // An object is never a promise, which the type cannot see through `T`.
          return { result: work(begin(tx, effects)) } as Sync<{ result: Sync<T> }>;
        })
        .then(({ result }) => {
          for (const effect of effects) effect(deps.sessions);
          return result;
        });
    },
    current(write, userId, sessionId) {
      const session = sessionById.get(write.tx, { id: sessionId });
      return session?.userId === userId ? userById.get(write.tx, { id: userId }) : null;
    },
    onDelete(listener) {
      deletions.add(listener);
      return () => deletions.delete(listener);
    },
  };
}

export const accountDisabled = (): AppError => new AppError(403, "Account is disabled");
