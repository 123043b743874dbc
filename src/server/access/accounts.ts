import type { Millis } from "../../kernel/clock.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { User } from "../config/app/users.ts";
import type { Actor, Transaction } from "../db/index.ts";

/** A stored user, without secrets. */
export interface Account extends Omit<User, "createdAt"> {
  /** Order of creation; lists use it as their cursor. */
  seq: number;
  /** Whether the user has ever had a session. */
  hasSignedIn: boolean;
  createdAt: Millis;
  updatedAt: Millis;
}

/** A user in a list. */
export interface AccountEntry
  extends Pick<
    Account,
    "seq" | "id" | "email" | "displayName" | "role" | "emailVerified" | "isAnonymous" | "disabled"
  > {
  createdAt: Millis;
}

/** The last user of a search page. Matches by email come first, ordered by email; matches by name follow, ordered by name. */
export interface AccountSearchPlace {
  by: "email" | "name";
  /** The user's email or name, depending on `by`. */
  text: string;
  seq: number;
}

export interface NewAccount {
  /** Generated if absent. */
  id?: string | undefined;
  email: string;
  /** Plaintext. At most one of `password` and `passwordHash` is set; `passwordHash` has passed `Accounts.passwordHashProblem`. */
  password?: string | undefined;
  passwordHash?: string | undefined;
  displayName?: string | null | undefined;
  avatarUrl?: string | null | undefined;
  role?: string | undefined;
  emailVerified?: boolean | undefined;
  metadata?: JsonObject | undefined;
  appMetadata?: JsonObject | undefined;
}

/** An administrator asks the owner of an address to join. */
export interface Invitation {
  email: string;
  role?: string | undefined;
  metadata?: JsonObject | undefined;
  /** Where the link leads; must match `auth.redirectUrls`. */
  redirectUrl?: string | null | undefined;
}

export type AccountChanges = {
  [Field in
    | "displayName"
    | "avatarUrl"
    | "role"
    | "emailVisibility"
    | "disabled"
    | "metadata"
    | "appMetadata"
    | "customClaims"
    | "email"
    | "emailVerified"]?: Account[Field] | undefined;
} & {
  /** Plaintext. */
  password?: string | undefined;
  /** Whether passkeys stay where a password is set; false by default. */
  keepPasskeys?: boolean | undefined;
};

/** A user's account at a provider of OAuth, as it is imported. */
export interface ImportedIdentity {
  provider: string;
  subject: string;
  email?: string | null | undefined;
  /** Whether the provider has verified the address of the user; false by default. */
  emailVerified?: boolean | undefined;
}

/** An account of an import: it may have no password. */
export interface ImportedAccount extends NewAccount {
  /** Milliseconds since 1970; now by default. */
  createdAt?: Millis | undefined;
  identities?: readonly ImportedIdentity[] | undefined;
}

/** A mail that an administrator has sent to a user. */
export type AccountMail = "reset" | "verification";

/** What a user is signed in with, and can sign in with; without secrets. Times are ISO 8601. */
export interface SignInMeans {
  /** Live ones, newest first, at most `SESSIONS_SHOWN_MAX`. */
  sessions: {
    id: string;
    createdAt: string;
    lastUsedAt: string;
    expiresAt: string;
    ip: string | null;
    userAgent: string | null;
  }[];
  factors: { id: string; type: "totp"; verified: boolean; createdAt: string }[];
  identities: { id: string; provider: string; email: string | null; createdAt: string; lastSignInAt: string }[];
  passkeys: { id: string; name: string | null; deviceType: string; createdAt: string; lastUsedAt: string | null }[];
}

/** What `removeMeans` removes. */
export type RemovableMeans = "session" | "identity" | "passkey";

/** An administrator's access to accounts. When a promise resolves, the change is durable and in effect. */
export interface Accounts {
  /** null: no such user. */
  get(id: string): Account | null;
  /** In order of creation, after the account with the `seq` `after` (0: from the first). */
  list(page: { after: number; limit: number }): AccountEntry[];
  /** null: no user has this address, in any of its forms. */
  findByEmail(email: string): AccountEntry | null;
  /**
   * Users whose email or name begins with `text`; the letters A-Z match in either case. `next` is null on the last page. A
   * page may have fewer than `limit` users, even none, because the rows that one call examines are bounded.
   */
  search(page: { text: string; after: AccountSearchPlace | null; limit: number }): {
    found: AccountEntry[];
    next: AccountSearchPlace | null;
  };
  /** Errors: 409 if the email or id is taken. */
  create(account: NewAccount, by: Actor): Promise<Account>;
  /**
   * Mails a link that sets a password, to a new user or one who has never signed in; earlier links of the same user become
   * invalid. Absent members of the latter stay unchanged. Errors: 400 for the redirect, 409 for a user who has signed in or is
   * disabled, 429 for too many mails to the address.
   */
  invite(invitation: Invitation, by: Actor): Promise<Account>;
  /** Creates all or none. Errors: 409 naming `users.N.email`, `users.N.id` or `users.N.identities`. */
  import(accounts: readonly ImportedAccount[], by: Actor): Promise<string[]>;
  /**
   * Absent members stay unchanged. Another address, unverified unless it is said to be, another password and disabling end all of the
   * user's sessions and mailed links; a password removes the passkeys too. Errors: 404, 409 for an address that is taken, 400 for
   * a password or a verification without an address.
   */
  update(id: string, changes: AccountChanges, by: Actor): Promise<Account>;
  /** Errors: 404. */
  remove(id: string, by: Actor): Promise<void>;
  /** Ends all sessions of the user. Errors: 404. */
  revoke(id: string, by: Actor): Promise<void>;
  /**
   * Mails the user a link that sets a new password, or that verifies the address. `redirectUrl`: null for the server's page. Errors:
   * 404, 400 for a user without an address or a wrong redirect, 409 for a disabled user or an address that is verified, 429.
   */
  sendMail(id: string, mail: AccountMail, redirectUrl: string | null, by: Actor): Promise<void>;
  /** Removes all MFA factors and recovery codes. Errors: 404. */
  removeFactors(id: string, by: Actor): Promise<void>;
  /** Errors: 404. */
  means(id: string): SignInMeans;
  /** Ends a session, or removes an identity or a passkey, also the last way to sign in. Errors: 404 for one that is not this user's. */
  removeMeans(id: string, removed: { kind: RemovableMeans; id: string }, by: Actor): Promise<void>;
  /** Why this hash cannot be used to check a password, as in "must be …"; null if it can. */
  passwordHashProblem(text: string): string | null;
}

/** Tells triggers and webhooks of accounts, inside the transaction of the change. */
export interface AccountNotes {
  /** Whether such events set off anything. */
  isWatched(event: "signup" | "delete"): boolean;
  note(tx: Transaction, change: { event: "signup" | "delete"; account: Account; by: Actor }): void;
}
