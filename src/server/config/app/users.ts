import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Auth } from "../identity.ts";
import type { InvitationOptions, NewUser, User, UserChanges } from "../shapes/users.ts";

export type { InvitationOptions, NewUser, User, UserChanges };

/** A token of a user at a provider of OAuth. */
export interface ProviderToken {
  accessToken: string;
  /** ISO 8601; null: the provider does not say. */
  expiresAt: string | null;
}

/**
 * The users, without rules. Arguments are validated like the administration's requests: an `AppError` with its status describes the
 * problem. A promise resolves when the change is on disk and in effect.
 */
export interface UsersAccessor {
  /** Returns the user; null when there is none. */
  get(id: string): Promise<User | null>;
  /** Finds the user with this address, in any of its forms; null when there is none. */
  find(by: { email: string }): Promise<User | null>;
  /**
   * Lists users in order of creation; with `q`, users whose email or display name begins with it. `limit` is 20 by default, at most
   * 1,000. `cursor` of the answer is null on the last page; a page of a search may have fewer users than `limit`, even none.
   */
  list(options?: { limit?: number; cursor?: string; q?: string }): Promise<{ users: User[]; cursor: string | null }>;
  /** Creates a user without sending mail. Errors: 400, 409 for a known email. */
  create(user: NewUser): Promise<User>;
  /**
   * Mails a link, valid for 7 days, at which the user accepts and sets a password; `link` is that link. For a user who has never signed
   * in it ends earlier links without `data`. With `data`, a user who has signed in is invited too, and keeps role and metadata. Errors:
   * 400, 409 for a user who is disabled, or who has signed in if there is no `data`, 413, 429 for too many mails.
   */
  invite(email: string, options?: InvitationOptions): Promise<{ user: User; link: string }>;
  /** Changes the user; `disabled: true` ends every session. Errors: 400, 404, 409 for an address that is taken. */
  update(id: string, changes: UserChanges): Promise<User>;
  /** Deletes the user. Errors: 404. */
  delete(id: string): Promise<void>;
  /** Replaces all custom claims, which the user's next token contains. Errors: 404, 413 over 4 KB. */
  setClaims(id: string, claims: JsonObject): Promise<void>;
  /** Ends every session of the user. Errors: 404. */
  revokeSessions(id: string): Promise<void>;
  /**
   * Returns the token of the user at a provider whose config has `keepTokens`, refreshed where it ends within a minute; null without one,
   * and where the provider takes it no more. Errors: 502 where the provider does not answer.
   */
  providerToken(id: string, provider: string): Promise<ProviderToken | null>;
  /** Returns what a rule receives for a request of this user, with the current custom claims; null for an unknown or disabled user. */
  auth(id: string): Promise<Auth | null>;
}
