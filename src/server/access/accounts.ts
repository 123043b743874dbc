import type { Millis } from "../../kernel/clock.ts";
import { requireJsonSize } from "../../kernel/fields.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { ProviderToken } from "../config/app/users.ts";
import type { SignInMeans } from "../config/shapes/sign-in.ts";
import type { ImportedUser, User, UserChanges, UserEntry, UserInvitation } from "../config/shapes/users.ts";
import type { AcceptedInvitation } from "../config/types.ts";
import type { Actor, Transaction } from "../db/index.ts";
import type { Readable } from "../db/query.ts";
import type { AskedChange } from "./account-records.ts";
import { METADATA_MAX_BYTES } from "./limits.ts";
import type { Principal } from "./principal.ts";

/** A stored user, without secrets. */
export interface Account extends Omit<User, "createdAt"> {
  /** The sequence number by creation; lists use it as their cursor. */
  seq: number;
  /** Whether the user has ever had a session. */
  hasSignedIn: boolean;
  createdAt: Millis;
  updatedAt: Millis;
}

/** A user in a list. */
export type AccountEntry = Pick<Account, keyof UserEntry | "seq">;

/**
 * The position after the last user of a search page. Matches by email come first, ordered by email; matches by name follow, ordered
 * by name.
 */
export interface AccountSearchPlace {
  by: "email" | "name";
  /** The user's email or name, depending on `by`. */
  text: string;
  seq: number;
}

type Given<Members> = { [Name in keyof Members]: Members[Name] | undefined };

/**
 * An account to create. `id` is generated if absent. `password` is plaintext; at most one of it and `passwordHash` is set, and the
 * latter has passed `Accounts.passwordHashProblem`.
 */
export interface NewAccount extends Given<Omit<ImportedUser, "email" | "verified" | "createdAt" | "identities">> {
  email: string;
  emailVerified?: boolean | undefined;
}

/** An administrator's invitation to the owner of an address. */
export interface Invitation extends Given<Omit<UserInvitation, "email">> {
  email: string;
}

/** Changes of an account. `password` is plaintext. */
export interface AccountChanges extends Given<UserChanges> {
  customClaims?: JsonObject | undefined;
}

/** An account of an import: it may have no password. */
export interface ImportedAccount extends NewAccount, Given<Pick<ImportedUser, "identities">> {
  /** The time of creation; now by default. */
  createdAt?: Millis | undefined;
}

/** The kind of mail that an administrator sends to a user. */
export type AccountMail = "reset" | "verification";

/** The kinds of what `removeMeans` removes. */
export type RemovableMeans = "session" | "identity" | "passkey";

/** An administrator's access to accounts. When a promise resolves, the change is durable and in effect. */
export interface Accounts {
  /** Returns the account; null: no such user. */
  get(id: string): Account | null;
  /** Lists accounts in order of creation, after the account with the `seq` `after` (0: from the first). */
  list(page: { after: number; limit: number }): AccountEntry[];
  /** Finds the user with this address, in any of its forms; null: none. */
  findByEmail(email: string): AccountEntry | null;
  /**
   * Searches users whose email or name begins with `text`; the letters A-Z match in either case. `next` is null on the last page. A
   * page may have fewer than `limit` users, even none, because the rows that one call examines are bounded.
   */
  search(page: { text: string; after: AccountSearchPlace | null; limit: number }): {
    found: AccountEntry[];
    next: AccountSearchPlace | null;
  };
  /** Creates an account. Errors: 409 if the email or id is taken. */
  create(account: NewAccount, by: Actor): Promise<Account>;
  /**
   * Mails a link that accepts an invitation, to a new user or one who has never signed in, whose earlier links without `data` become
   * invalid; with `data`, also to one who has signed in, whose role and metadata stay. Absent members leave an existing user unchanged.
   * Errors: 400 for the redirect and an unknown inviter, 409 for a user who is disabled, or has signed in and gets no `data`, 429 for
   * too many mails to the address.
   */
  invite(invitation: Invitation, by: Actor): Promise<{ account: Account; link: string }>;
  /** Creates all accounts or none. Errors: 409 naming `users.N.email`, `users.N.id` or `users.N.identities`. */
  import(accounts: readonly ImportedAccount[], by: Actor): Promise<string[]>;
  /**
   * Changes an account; absent members stay unchanged. A new address (unverified unless set), a new password, and disabling end all
   * of the user's sessions and mailed links; a password also removes the passkeys. Errors: 404, 409 for an address that is taken,
   * 400 for a password or a verification without an address.
   */
  update(id: string, changes: AccountChanges, by: Actor): Promise<Account>;
  /** Deletes the account. Errors: 404, 409 where a reference restricts it. */
  remove(id: string, by: Actor): Promise<DeletionReport>;
  /** Applies the changes that updates of records have asked for to their accounts, each once. */
  changeAsked(asked: readonly AskedChange[]): Promise<void>;
  /** Ends all sessions of the user. Errors: 404. */
  revoke(id: string, by: Actor): Promise<void>;
  /**
   * Mails the user a link that sets a new password, or that verifies the address. `redirectUrl`: null for the server's page.
   * Errors: 404, 400 for a user without an address or a wrong redirect, 409 for a disabled user or a verified address, 429.
   */
  sendMail(id: string, mail: AccountMail, redirectUrl: string | null, by: Actor): Promise<void>;
  /** Removes all MFA factors and recovery codes. Errors: 404. */
  removeFactors(id: string, by: Actor): Promise<void>;
  /** See `app.users.providerToken`. */
  providerToken(id: string, provider: string): Promise<ProviderToken | null>;
  /** Returns the user's sessions and means to sign in. Errors: 404. */
  means(id: string): SignInMeans;
  /** Ends a session, or removes an identity or a passkey, even the last way to sign in. Errors: 404 if it is not this user's. */
  removeMeans(id: string, removed: { kind: RemovableMeans; id: string }, by: Actor): Promise<void>;
  /**
   * Makes `from` part of `into`: records, files, identities, passkeys and devices move, the rest of `from` goes, and both are told by mail.
   * A preview says what would move. Errors: 404, 400 for one account twice, 409 for a unique value that both have, and for too much
   * to move; nothing has moved then.
   */
  merge(asked: { into: string; from: string; isPreview: boolean }, by: Actor): Promise<MergedAccounts>;
  /** Errors: 401 unless the user has signed in, in this session, within the last ten minutes. */
  requireRecentSignIn(principal: Extract<Principal, { kind: "user" }>): void;
  /** Writes down, in the audit log, that the user is exported. `by`: null for the user. */
  noteExport(id: string, by: Actor | null): Promise<void>;
  /** Describes why this hash cannot be used to check a password, as in "must be …"; null if it can. */
  passwordHashProblem(text: string): string | null;
}

/** Result of a merge of two accounts: what has moved, records by `namespace/table`. */
export interface MergedAccounts {
  records: Record<string, number>;
  files: number;
  identities: number;
}

/** Ended by the deletion of an account: numbers of sessions and means to sign in. */
export interface DeletionReport {
  /** The numbers of records that were changed or deleted because they referred to the account, by `namespace/table`. */
  records: Record<string, number>;
  sessions: number;
  factors: number;
  identities: number;
  passkeys: number;
}

/** Files and devices of users, in system.db. */
export interface UserHoldings {
  /** Counts the files that a user has uploaded. Errors: 409 for more than a merge moves. */
  countFiles(sql: Readable, userId: string): number;
  /** Moves files to another user, as many as one transaction moves. Returns false if there may be more. */
  move(tx: Transaction, of: { userId: string; to: string }): boolean;
}

type AccountHappening = { event: "signup" | "delete" } | { event: "accept"; invitation: AcceptedInvitation };

/** Notifies triggers and webhooks of account changes, inside the transaction of the change. */
export interface AccountNotes {
  /** Whether any trigger or webhook listens to such events. */
  isWatched(event: "signup" | "delete" | "accept"): boolean;
  /** `invitation`: the accepted one. */
  note(tx: Transaction, change: { account: Account; by: Actor } & AccountHappening): void;
}

/** Checks the size of a user's metadata, named as in the request. Errors: 413 above METADATA_MAX_BYTES of JSON each. */
export function requireMetadataSize({ metadata, appMetadata }: Pick<AccountChanges, "metadata" | "appMetadata">): void {
  for (const [name, value] of Object.entries({ metadata, appMetadata })) {
    if (value !== undefined) requireJsonSize(name, value, METADATA_MAX_BYTES);
  }
}
