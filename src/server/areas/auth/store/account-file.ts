import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Account, AccountNotes } from "../../../access/accounts.ts";
import type { Actor, AuditedChange } from "../../../db/index.ts";
import type { DatabaseFile, Sync, Transaction } from "../../../db/types.ts";
import { type NewUser, userValues } from "./new-user.ts";
import type { SessionCache } from "./session-cache.ts";
import { type Caller, sessionOf } from "./caller.ts";
import { unmarkIdentities } from "../statements/identities.ts";
import { deleteSecretsFor } from "../statements/secrets.ts";
import { deleteOtherSessions, deleteSessionsOfUser } from "../statements/sessions.ts";
import { deleteUser, insertUser, type SecretAccount, updateUser, userById } from "../statements/users.ts";

/** Absent and undefined members stay. */
export type UserChanges = {
  [Field in keyof Omit<SecretAccount, "seq" | "id" | "createdAt" | "updatedAt">]?: SecretAccount[Field] | undefined;
};

/**
 * One write to the accounts. Its effects on sessions are collected, and applied to memory and listeners when the write is on
 * disk and before it is answered.
 */
export interface AccountWrite {
  readonly tx: Transaction;
  readonly now: Millis;
  /** The caller has made sure that neither the id nor the email is taken. `by` is the new user by default: somebody who signs up. */
  insert(user: NewUser, by?: Actor): SecretAccount;
  /**
   * Changes the user, who exists, and the state that the user's sessions have in memory. `by`: for the audit log, where somebody
   * else than the user does it.
   */
  update(userId: string, changes: UserChanges, by?: Actor): SecretAccount;
  /** For the audit log, if `by` is the audited caller of the request. */
  audit(by: Actor, change: AuditedChange): void;
  /** `by` is the user by default. */
  delete(userId: string, by?: Actor): void;
  /** Call for each account that was inserted in another way than by `insert`. */
  created(userId: string, by: Actor): void;
  /** The caller has deleted these rows. */
  ended(sessionIds: readonly string[]): void;
  extended(sessionId: string, expiresAt: Millis): void;
  /** Access tokens of earlier versions are invalid from now on; sockets opened with one are closed. */
  renewed(sessionId: string, tokenVersion: number): void;
  /**
   * Ends all sessions of the user but one, and what could be completed without them: sign-ins that wait for the second factor,
   * changes of the address, and the invitation. `isAudited`: the log has it with the change that it belongs to. False by default.
   */
  endSessions(userId: string, options: { except: string | null; isAudited?: boolean }): void;
  /** Ends these sessions of a user, of which the log has why. */
  signOut(userId: string, sessionIds: readonly string[], reason: SignOutReason): void;
}

export interface AccountFile {
  readonly sql: DatabaseFile;
  write<T>(work: (write: AccountWrite) => Sync<T>): Promise<T>;
  /** The present user of a live session; null if the session, or the access token by a new password, has ended meanwhile. */
  current(write: AccountWrite, caller: Caller): SecretAccount | null;
}

/**
 * Why sessions ended: `asked` by the user; `reused`: a refresh token came twice, so that somebody may have copied it; `credentials`:
 * the password, the address or another way in was changed.
 */
export type SignOutReason = "asked" | "reused" | "credentials";

type Effect = (sessions: SessionCache) => void;

const stateOf = ({ role, email, emailVerified, isAnonymous }: Account) => ({ role, email, emailVerified, isAnonymous });

export function createAccountFile(deps: {
  file: DatabaseFile;
  sessions: SessionCache;
  clock: Clock;
  notes: AccountNotes;
}): AccountFile {
  const note = noteWith(deps.notes);

  const begin = (tx: Transaction, effects: Effect[]): AccountWrite => {
    const now = deps.clock.now();
    const ended = (sessionIds: readonly string[]): void => {
      if (sessionIds.length > 0) effects.push((sessions) => sessions.end(sessionIds));
    };
    const audit = auditIn(tx);
    const signOut = (userId: string, sessionIds: readonly string[], reason: SignOutReason): void => {
      ended(sessionIds);
      auditSignOut(tx, userId, sessionIds, reason);
    };
    return {
      tx,
      now,
      ended,
      insert(user, by = { user: user.id }) {
        const account = insertUser.get(tx, userValues(user, now));
        if (account === null) throw new Error("INSERT RETURNING gave no row");
        note(tx, "signup", user.id, by);
        audit(by, { action: "user.create", target: `users/${user.id}`, after: shown(account) });
        return account;
      },
      audit,
      created(userId, by) {
        note(tx, "signup", userId, by);
        audit(by, { action: "user.create", target: `users/${userId}` });
      },
      update(userId, changes, by) {
        const present = userById.get(tx, { id: userId });
        if (present === null) throw new Error(`user ${userId} vanished within a transaction`);
        const account: SecretAccount = { ...present, ...definedOf(changes), updatedAt: now };
        updateUser.run(tx, account);
        if (account.email !== present.email) unmarkIdentities.run(tx, { userId });
        if (by !== undefined) audit(by, updated(changes, present, account));
        effects.push((sessions) => sessions.update(userId, stateOf(account)));
        return account;
      },
      delete(userId, by = { user: userId }) {
        note(tx, "delete", userId, by);
        const present = userById.get(tx, { id: userId });
        audit(by, {
          action: "user.delete",
          target: `users/${userId}`,
          before: present === null ? null : shown(present),
        });
        ended(deleteSessions(tx, userId, null));
        deleteUser.run(tx, { id: userId });
      },
      extended(sessionId, expiresAt) {
        effects.push((sessions) => sessions.extend(sessionId, expiresAt));
      },
      renewed(sessionId, tokenVersion) {
        effects.push((sessions) => sessions.renew(sessionId, tokenVersion));
      },
      signOut,
      endSessions(userId, { except, isAudited = false }) {
        const sessionIds = deleteSessions(tx, userId, except);
        if (isAudited) ended(sessionIds);
        else signOut(userId, sessionIds, "credentials");
        for (const purpose of ["mfa-ticket", "email-change", "invite"] as const)
          deleteSecretsFor.run(tx, { userId, purpose });
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
    current: (write, caller) =>
      sessionOf(write.tx, caller) === null ? null : userById.get(write.tx, { id: caller.userId }),
  };
}

/** Gives the ids of the deleted sessions. `except`: one that stays. */
function deleteSessions(tx: Transaction, userId: string, except: string | null): string[] {
  const rows =
    except === null ? deleteSessionsOfUser.all(tx, { userId }) : deleteOtherSessions.all(tx, { userId, id: except });
  return rows.map(({ id }) => id);
}

function auditSignOut(tx: Transaction, userId: string, sessionIds: readonly string[], reason: SignOutReason): void {
  if (sessionIds.length === 0) return;
  const after = { sessions: sessionIds.length, reason };
  tx.auditBy({ kind: "user", name: userId }, { action: "signout", target: `users/${userId}`, after });
}

export const accountDisabled = (): AppError => new AppError(403, "Account is disabled");

const auditIn = (tx: Transaction) => (by: Actor, change: AuditedChange) => {
  tx.causedBy(by);
  tx.audit(() => change);
};

const noteWith =
  (notes: AccountNotes) =>
  (tx: Transaction, event: "signup" | "delete", userId: string, by: Actor): void => {
    const account = notes.isWatched(event) ? userById.get(tx, { id: userId }) : null;
    if (account !== null) notes.note(tx, { event, account, by });
  };

const definedOf = (changes: UserChanges): Partial<SecretAccount> =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));

/** An account in the audit log. */
function shown(present: SecretAccount | null): object | null {
  if (present === null) return null;
  const { passwordHash: _, seq: _seq, ...account } = present;
  return account;
}

function updated(changes: UserChanges, before: SecretAccount, after: SecretAccount): AuditedChange {
  const { disabled, customClaims } = changes;
  const isClaims = customClaims !== undefined ? "user.claims" : "user.update";
  const action = disabled === undefined || disabled === null ? isClaims : disabled ? "user.disable" : "user.enable";
  const set = changes.passwordHash === undefined ? {} : { password: "set" };
  return { action, target: `users/${before.id}`, before: shown(before), after: { ...shown(after), ...set } };
}
