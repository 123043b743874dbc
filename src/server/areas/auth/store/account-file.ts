import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { AccountMarks } from "../../../access/account-records.ts";
import type { AccountNotes, NewAccount } from "../../../access/accounts.ts";
import { languageOf } from "../../../config/shapes/user-fields.ts";
import type { AcceptedInvitation } from "../../../config/types.ts";
import type { Actor, AuditedChange } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import type { DatabaseFile, Sync, Transaction } from "../../../db/types.ts";
import { deleteFactorsOfType, refuseTokensOf, refuseTokensOfUser, unmarkIdentities } from "../statements/means.ts";
import { deletePlainInvitations, deleteSecretsFor } from "../statements/secrets.ts";
import { deleteOtherSessions, deleteSessionsOfUser, type SessionRow, sessionById } from "../statements/sessions.ts";
import {
  deleteUser,
  insertUser,
  type SecretAccount,
  type UserValues,
  updateUser,
  userById,
} from "../statements/users.ts";
import type { SessionCache } from "./session-cache.ts";

/** The session that a request's access token belongs to. */
export interface Caller {
  userId: string;
  sessionId: string;
  /** The version of the access token. */
  tokenVersion: number;
}

/** Returns null if the session has ended, or a new password has ended the caller's access token. */
export function sessionOf(sql: Readable, { userId, sessionId, tokenVersion }: Caller): SessionRow | null {
  const session = sessionById.get(sql, { id: sessionId });
  return session?.userId === userId && session.tokenVersion === tokenVersion ? session : null;
}

/** A user to be inserted: absent members have their defaults. */
export interface NewUser extends Omit<NewAccount, "id" | "email" | "password"> {
  id: string;
  email: string | null;
  isAnonymous?: boolean;
  /** Verified, E.164. */
  phone?: string | null;
  /** true for a user who is given a session in the same write. */
  hasSignedIn?: boolean;
}

/** The one form of a tag that has been checked; null and undefined stay. */
const storedLanguage = (tag: string | null | undefined): string | null | undefined =>
  typeof tag === "string" ? languageOf(tag) : tag;

export function userValues(user: NewUser, now: Millis): UserValues {
  return {
    id: user.id,
    email: user.email,
    emailVerified: user.emailVerified ?? false,
    passwordHash: user.passwordHash ?? null,
    displayName: user.displayName ?? null,
    avatarUrl: user.avatarUrl ?? null,
    role: user.role ?? "user",
    emailVisibility: user.emailVisibility ?? "private",
    disabled: user.disabled ?? false,
    isAnonymous: user.isAnonymous ?? false,
    metadata: user.metadata ?? {},
    appMetadata: user.appMetadata ?? {},
    hasSignedIn: user.hasSignedIn ?? false,
    language: storedLanguage(user.language) ?? null,
    phone: user.phone ?? null,
    createdAt: now,
  };
}

/** Absent and undefined members stay. */
export type UserChanges = {
  [Field in keyof Omit<SecretAccount, "seq" | "id" | "createdAt" | "updatedAt">]?: SecretAccount[Field] | undefined;
};

/**
 * Why sessions ended: `asked` by the user; `reused`: a refresh token came twice, so that somebody may have copied it; `credentials`:
 * the password, the address or another way in was changed.
 */
type SignOutReason = "asked" | "reused" | "credentials";

type Effect = (sessions: SessionCache) => void;

/** The members of an account that its record shows. */
const RECORDED = ["displayName", "avatarUrl", "isAnonymous", "email", "emailVisibility"] as const;

interface WriteParts {
  now: Millis;
  effects: Effect[];
  notes: AccountNotes;
  records: AccountMarks;
  /** Receives the accounts that the write marks. */
  marked: string[];
}

/**
 * One write to the accounts. Its effects on sessions are collected, and applied to memory and listeners when the write is on
 * disk and before it is answered.
 */
export class AccountWrite {
  readonly tx: Transaction;
  readonly now: Millis;
  readonly #deps: WriteParts;

  constructor(tx: Transaction, parts: WriteParts) {
    this.#deps = parts;
    this.tx = tx;
    this.now = parts.now;
  }

  /** Inserts a user whose id and email nobody has. `by` is the new user by default: somebody who signs up. */
  insert(user: NewUser, by: Actor = { user: user.id }): SecretAccount {
    const account = insertUser.get(this.tx, userValues(user, this.now));
    if (account === null) throw new Error("INSERT RETURNING gave no row");
    this.marked(user.id);
    this.#note("signup", user.id, by);
    this.audit(by, { action: "user.create", target: `users/${user.id}`, after: shown(account) });
    return account;
  }

  /** Notes that the user has accepted an invitation. */
  accepted(userId: string, invitation: AcceptedInvitation): void {
    const account = this.#deps.notes.isWatched("accept") ? userById.get(this.tx, { id: userId }) : null;
    if (account !== null)
      this.#deps.notes.note(this.tx, { event: "accept", account, invitation, by: { user: userId } });
    this.auditByUser(userId, "user.accept", { invitedBy: invitation.invitedBy });
  }

  /** Notes an account that was inserted in another way than by `insert`. */
  created(userId: string, by: Actor): void {
    this.marked(userId);
    this.#note("signup", userId, by);
    this.audit(by, { action: "user.create", target: `users/${userId}` });
  }

  /**
   * Changes the user, who exists, and the state that the user's sessions have in memory. `by`: for the audit log, where somebody
   * else than the user does it.
   */
  update(userId: string, changes: UserChanges, by?: Actor): SecretAccount {
    const present = userById.get(this.tx, { id: userId });
    if (present === null) throw new Error(`user ${userId} vanished within a transaction`);
    const language = storedLanguage(changes.language);
    const account: SecretAccount = { ...present, ...definedOf({ ...changes, language }), updatedAt: this.now };
    updateUser.run(this.tx, account);
    if (RECORDED.some((name) => account[name] !== present[name])) this.marked(userId);
    // The factor is the number.
    if (account.phone === null && present.phone !== null) deleteFactorsOfType.run(this.tx, { userId, type: "phone" });
    if (account.email !== present.email) unmarkIdentities.run(this.tx, { userId });
    if (by !== undefined) this.audit(by, updated(changes, present, account));
    const { role, email, emailVerified, phone, isAnonymous } = account;
    this.#deps.effects.push((sessions) => sessions.update(userId, { role, email, emailVerified, phone, isAnonymous }));
    return account;
  }

  /**
   * Deletes the user with sessions and means of sign-in. `by` is the user by default. `isAudited`: false where the audit log has what
   * it is part of; true by default.
   */
  delete(userId: string, by: Actor = { user: userId }, { isAudited = true }: { isAudited?: boolean } = {}): void {
    this.#note("delete", userId, by);
    const before = shown(userById.get(this.tx, { id: userId }));
    if (isAudited) this.audit(by, { action: "user.delete", target: `users/${userId}`, before });
    this.ended(this.#deleteSessions(userId, null));
    deleteUser.run(this.tx, { id: userId });
    this.marked(userId);
  }

  /** Makes the record of the account follow what this write does to it, before the write is answered. */
  marked(userId: string): void {
    this.#deps.records.mark(this.tx, userId);
    this.#deps.marked.push(userId);
  }

  /** Adds to the audit log, if `by` is the audited caller of the request. */
  audit(by: Actor, change: AuditedChange): void {
    this.tx.causedBy(by);
    this.tx.audit(() => change);
  }

  /** Adds to the audit log what users do to their own account. */
  auditByUser(userId: string, action: string, after?: object): void {
    const change = { action, target: `users/${userId}`, ...(after === undefined ? {} : { after }) };
    this.tx.auditBy({ kind: "user", name: userId }, change);
  }

  /** Ends sessions whose rows the caller has deleted. The session of an identity has its id: its tokens end too. */
  ended(sessionIds: readonly string[]): void {
    for (const id of sessionIds) refuseTokensOf.run(this.tx, { id, now: this.now });
    this.expired(sessionIds);
  }

  /** Ends sessions that have expired, whose rows the caller has deleted. */
  expired(sessionIds: readonly string[]): void {
    if (sessionIds.length > 0) this.#deps.effects.push((sessions) => sessions.end(sessionIds));
  }

  extended(sessionId: string, expiresAt: Millis): void {
    this.#deps.effects.push((sessions) => sessions.extend(sessionId, expiresAt));
  }

  /** Ends access tokens of earlier versions, and closes sockets opened with one. */
  renewed(sessionId: string, tokenVersion: number): void {
    this.#deps.effects.push((sessions) => sessions.renew(sessionId, tokenVersion));
  }

  /** Ends these sessions of a user, whose rows the caller has deleted; the audit log has the reason. */
  signOut(userId: string, sessionIds: readonly string[], reason: SignOutReason): void {
    this.ended(sessionIds);
    if (sessionIds.length > 0) this.auditByUser(userId, "signout", { sessions: sessionIds.length, reason });
  }

  /**
   * Ends all sessions of the user but one, and what could be completed without them: sign-ins that wait for the second factor,
   * changes of the address, and invitations without data. `isAudited`: the log has it with the change that it belongs to. False by default.
   */
  endSessions(userId: string, { except, isAudited = false }: { except: string | null; isAudited?: boolean }): void {
    const sessionIds = this.#deleteSessions(userId, except);
    refuseTokensOfUser.run(this.tx, { userId, now: this.now });
    if (isAudited) this.ended(sessionIds);
    else this.signOut(userId, sessionIds, "credentials");
    for (const purpose of ["mfa-ticket", "email-change", "phone-change", "phone-factor"] as const) {
      deleteSecretsFor.run(this.tx, { userId, purpose });
    }
    deletePlainInvitations.run(this.tx, { userId });
  }

  /** Returns the ids of the deleted sessions. `except`: one that stays. */
  #deleteSessions(userId: string, except: string | null): string[] {
    const rows =
      except === null
        ? deleteSessionsOfUser.all(this.tx, { userId })
        : deleteOtherSessions.all(this.tx, { userId, id: except });
    return rows.map(({ id }) => id);
  }

  #note(event: "signup" | "delete", userId: string, by: Actor): void {
    const account = this.#deps.notes.isWatched(event) ? userById.get(this.tx, { id: userId }) : null;
    if (account !== null) this.#deps.notes.note(this.tx, { event, account, by });
  }
}

interface AccountFileDeps {
  file: DatabaseFile;
  sessions: SessionCache;
  clock: Clock;
  notes: AccountNotes;
  records: AccountMarks;
}

/** The accounts in system.db. */
export class AccountFile {
  readonly sql: DatabaseFile;
  readonly #deps: AccountFileDeps;

  constructor(deps: AccountFileDeps) {
    this.#deps = deps;
    this.sql = deps.file;
  }

  /**
   * Writes like `write`, where `work` deletes the account, and resolves when its record is gone, with the number of records that referred
   * to it, by `namespace/table`. Errors: 409 where a reference to the table of users restricts the deletion, before anything is changed.
   */
  deleting(userId: string, work: (write: AccountWrite) => void): Promise<Record<string, number>> {
    return this.#deps.records.deleting(userId, () => this.write(work));
  }

  /** Merges by the records of the table of users. Returns null where there is none. */
  merge(...asked: Parameters<AccountMarks["merge"]>): ReturnType<AccountMarks["merge"]> {
    return this.#deps.records.merge(...asked);
  }

  // The effects hang on the write's own promise and nothing else, so that they run in the order of commits.
  write<T>(work: (write: AccountWrite) => Sync<T>): Promise<T> {
    const effects: Effect[] = [];
    const marked: string[] = [];
    const parts = { effects, marked, notes: this.#deps.notes, records: this.#deps.records };
    return this.sql
      .write<{ result: Sync<T> }>((tx) => {
        effects.length = 0;
        marked.length = 0;
        const write = new AccountWrite(tx, { ...parts, now: this.#deps.clock.now() });
        // An object is never a promise, which the type cannot see through `T`.
        return { result: work(write) } as Sync<{ result: Sync<T> }>;
      })
      .then(({ result }) => {
        for (const effect of effects) effect(this.#deps.sessions);
        return marked.length === 0 ? result : this.#deps.records.copied(marked).then(() => result);
      });
  }
}

/** Returns the user of a live session; null if the session, or the access token by a new password, has ended meanwhile. */
export const currentAccount = ({ tx }: AccountWrite, caller: Caller): SecretAccount | null =>
  sessionOf(tx, caller) === null ? null : userById.get(tx, { id: caller.userId });

export const accountDisabled = (): AppError => new AppError(403, "Account is disabled");

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
