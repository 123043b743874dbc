import type { Millis } from "../kernel/clock.ts";
import type { JsonObject } from "../kernel/json.ts";

/** A user as the server keeps it, without secrets. */
export interface Account {
  /** Order of creation; the cursor of lists. */
  seq: number;
  id: string;
  /** null for anonymous users. */
  email: string | null;
  emailVerified: boolean;
  emailVisibility: "public" | "private";
  displayName: string | null;
  avatarUrl: string | null;
  role: string;
  isAnonymous: boolean;
  disabled: boolean;
  /** The user's own. */
  metadata: JsonObject;
  /** The administrator's; never sent to clients. */
  appMetadata: JsonObject;
  customClaims: JsonObject;
  createdAt: Millis;
  updatedAt: Millis;
}

/** What lists hold of a user. */
export interface AccountEntry
  extends Pick<
    Account,
    "seq" | "id" | "email" | "displayName" | "role" | "emailVerified" | "isAnonymous" | "disabled"
  > {
  createdAt: Millis;
}

/** Where a search goes on: behind this user. First come those whose email begins so, by email, then the others, by name. */
export interface AccountSearchPlace {
  by: "email" | "name";
  /** The user's email or name. */
  text: string;
  seq: number;
}

export interface NewAccount {
  /** Made when absent. */
  id?: string | undefined;
  email: string;
  /** Plaintext, or a hash that `Accounts.passwordHashProblem` finds nothing wrong with, or none. */
  password?: string | undefined;
  passwordHash?: string | undefined;
  displayName?: string | null | undefined;
  avatarUrl?: string | null | undefined;
  role?: string | undefined;
  emailVerified?: boolean | undefined;
  metadata?: JsonObject | undefined;
  appMetadata?: JsonObject | undefined;
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
    | "customClaims"]?: Account[Field] | undefined;
};

/** The accounts as an administrator may handle them. Everything is durable, and counts at once, when it resolves. */
export interface Accounts {
  /** null: no such user. */
  get(id: string): Account | null;
  /** In order of creation, from after `after` (0: the start). */
  list(page: { after: number; limit: number }): AccountEntry[];
  /** null: nobody has it. Emails are lower-cased. */
  findByEmail(email: string): AccountEntry | null;
  /**
   * Users whose email or name begins with `text`, letters A-Z of either case. `next` is null on the last page. A page may hold
   * fewer than `limit`, also none: what one request looks at is bounded.
   */
  search(page: { text: string; after: AccountSearchPlace | null; limit: number }): {
    found: AccountEntry[];
    next: AccountSearchPlace | null;
  };
  /** Errors: 409 for a known email or id. */
  create(account: NewAccount): Promise<Account>;
  /** All or none. Errors: 409 naming `users.N.email` or `users.N.id`. */
  import(accounts: readonly NewAccount[]): Promise<string[]>;
  /** Absent members stay. Disabling ends every session. Errors: 404. */
  update(id: string, changes: AccountChanges): Promise<Account>;
  /** Errors: 404. */
  remove(id: string): Promise<void>;
  /** Ends every session. Errors: 404. */
  revoke(id: string): Promise<void>;
  /** Factors and recovery codes together. Errors: 404. */
  removeFactors(id: string): Promise<void>;
  /** What keeps a sign-in from being checked against this hash, as in "must be …"; null when it can be. */
  passwordHashProblem(text: string): string | null;
}

/** How others learn that a user is gone, after the deletion is on disk. */
export interface AccountEvents {
  /** The function returned takes the listener away. */
  onDelete(listener: (userId: string) => void): () => void;
}
