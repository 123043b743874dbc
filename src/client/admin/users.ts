import type { JsonObject } from "../../kernel/json/json.ts";
import { orNull } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";

/** A user in a list. */
export interface UserEntry {
  id: string;
  /** null for anonymous users. */
  email: string | null;
  displayName: string | null;
  role: string;
  emailVerified: boolean;
  isAnonymous: boolean;
  disabled: boolean;
  createdAt: string;
}

/** A user as administrators see one. */
export interface AdminUser extends UserEntry {
  avatarUrl: string | null;
  emailVisibility: "public" | "private";
  /** Written by the user. */
  metadata: JsonObject;
  /** Never sent to clients. */
  appMetadata: JsonObject;
  customClaims: JsonObject;
}

export interface NewUser {
  email: string;
  password: string;
  displayName?: string | null;
  /** `user` by default. */
  role?: string;
}

export interface ImportedUser {
  id?: string;
  email: string;
  /** At most one of this and `passwordHash`; without both the user signs in by link, code or provider. */
  password?: string;
  /** bcrypt, or `pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH`. */
  passwordHash?: string;
  displayName?: string | null;
  avatarUrl?: string | null;
  role?: string;
  verified?: boolean;
  /** ISO 8601; now by default. */
  createdAt?: string;
  /** Users at providers of `auth.oauth`, by the providers' ids of them. */
  identities?: { provider: string; subject: string; email?: string | null; emailVerified?: boolean }[];
  metadata?: JsonObject;
  appMetadata?: JsonObject;
}

/** Absent members stay; `metadata` and `appMetadata` are replaced as a whole. */
export interface UserChanges {
  displayName?: string | null;
  avatarUrl?: string | null;
  role?: string;
  emailVisibility?: "public" | "private";
  /** true ends every session. */
  disabled?: boolean;
  metadata?: JsonObject;
  appMetadata?: JsonObject;
  /** These three need the scope `auth:credentials:*:write`. Another address or password ends every session. */
  email?: string;
  /** false after a change of `email` unless given. */
  emailVerified?: boolean;
  password?: string;
  /** true: the passkeys stay where a password is set. */
  keepPasskeys?: boolean;
}

/** What a user is signed in with, and can sign in with. */
export interface SignInMeans {
  /** Live ones, newest first, at most 100. */
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

/** A mail that waits in the outbox: no mail server is configured, or the server runs as a drill. */
export interface OutboxEntry {
  id: string;
  /** Such as `invite`; `app` for mails of the config's code. */
  kind: string;
  from: string;
  to: string;
  subject: string;
  sentAt: string;
}

/** `[hidden]` in place of its link and code. */
export interface OutboxMail extends OutboxEntry {
  text: string;
  html: string | null;
}

export interface AdminUsers {
  /** null when there is no such user. */
  get(id: string): Promise<AdminUser | null>;
  /** In order of creation; with `q`, those whose address or name begins so. */
  list(options?: { limit?: number; cursor?: string | null; q?: string }): Promise<{
    items: UserEntry[];
    /** For the next page; null on the last one. */
    cursor: string | null;
  }>;
  /** Errors: `conflict` for a known address. */
  create(user: NewUser): Promise<AdminUser>;
  /** Mails a link at which the user sets a password. */
  invite(invitation: { email: string; role?: string; metadata?: JsonObject; redirectUrl?: string }): Promise<AdminUser>;
  /** Up to 1,000 users, all or none. Gives their ids in order. */
  import(users: readonly ImportedUser[]): Promise<string[]>;
  update(id: string, changes: UserChanges): Promise<AdminUser>;
  delete(id: string): Promise<void>;
  /** Replaces all custom claims, which the user's next token contains. */
  setClaims(id: string, claims: JsonObject): Promise<void>;
  /** Ends every session of the user. */
  revokeSessions(id: string): Promise<void>;
  /** Mails the user a link that sets a new password (`reset`) or verifies the address. Errors: `conflict`. */
  sendMail(id: string, mail: "reset" | "verification", redirectUrl?: string): Promise<void>;
  /** Removes the second factors and recovery codes. */
  removeFactors(id: string): Promise<void>;
  /** Newest first. */
  outbox(options?: {
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: OutboxEntry[]; cursor: string | null }>;
  /** Errors: `not_found`. */
  outboxMail(id: string): Promise<OutboxMail>;
  /** Errors: `not_found`. */
  signInMeans(id: string): Promise<SignInMeans>;
  /** Ends a session, or removes an identity or a passkey, also the last way to sign in. Errors: `not_found`. */
  removeSignInMeans(id: string, kind: "session" | "identity" | "passkey", removedId: string): Promise<void>;
}

const USERS = "/api/auth/admin/users";
const OUTBOX = "/api/auth/admin/outbox";
const IMPORTS = "/api/admin/auth/users";
const PARTS = { session: "sessions", identity: "identities", passkey: "passkeys" };
const pathOf = (id: string): string => `${USERS}/${encodeURIComponent(id)}`;

export const createUsers = ({ request }: Transport): AdminUsers => ({
  get: (id) => orNull(request<AdminUser>("GET", pathOf(id))),
  async list(query) {
    const answer = await request<{ users: UserEntry[]; cursor: string | null }>("GET", USERS, { query: { ...query } });
    return { items: answer.users, cursor: answer.cursor };
  },
  create: async (body) => (await request<{ user: AdminUser }>("POST", USERS, { body })).user,
  invite: async (body) => (await request<{ user: AdminUser }>("POST", `${USERS}/invite`, { body })).user,
  async import(users) {
    const path = `${IMPORTS}/import`;
    const { results } = await request<{ results: { id: string }[] }>("POST", path, { body: { users } });
    return results.map(({ id }) => id);
  },
  update: (id, body) => request<AdminUser>("PATCH", pathOf(id), { body }),
  async delete(id) {
    await request("DELETE", pathOf(id));
  },
  async setClaims(id, body) {
    await request("PUT", `${pathOf(id)}/claims`, { body });
  },
  async revokeSessions(id) {
    await request("POST", `${pathOf(id)}/revoke`);
  },
  async sendMail(id, mail, redirectUrl) {
    await request("POST", `${pathOf(id)}/send-${mail}`, { body: { redirectUrl } });
  },
  async removeFactors(id) {
    await request("DELETE", `${pathOf(id)}/mfa`);
  },
  async outbox(query) {
    const answer = await request<{ mails: OutboxEntry[]; cursor: string | null }>("GET", OUTBOX, {
      query: { ...query },
    });
    return { items: answer.mails, cursor: answer.cursor };
  },
  outboxMail: (id) => request<OutboxMail>("GET", `${OUTBOX}/${encodeURIComponent(id)}`),
  signInMeans: (id) => request<SignInMeans>("GET", `${pathOf(id)}/means`),
  async removeSignInMeans(id, kind, removedId) {
    await request("DELETE", `${pathOf(id)}/${PARTS[kind]}/${encodeURIComponent(removedId)}`);
  },
});
