import type { JsonObject } from "../../kernel/json/json.ts";
import { orNull } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";

/** User in a list. */
export interface UserEntry {
  id: string;
  /** Email address; null for anonymous users. */
  email: string | null;
  displayName: string | null;
  role: string;
  emailVerified: boolean;
  isAnonymous: boolean;
  disabled: boolean;
  createdAt: string;
}

/** User as administrators see one. */
export interface AdminUser extends UserEntry {
  avatarUrl: string | null;
  emailVisibility: "public" | "private";
  /** Verified phone number (E.164); null without one. */
  phone: string | null;
  /** Language of mails to the user (BCP 47); null if not known. */
  language: string | null;
  /** Metadata that the user can write. */
  metadata: JsonObject;
  /** Metadata that is never sent to clients. */
  appMetadata: JsonObject;
  customClaims: JsonObject;
}

export interface NewUser {
  email: string;
  password: string;
  displayName?: string | null;
  language?: string | null;
  /** Role; `user` by default. */
  role?: string;
}

export interface ImportedUser {
  id?: string;
  email: string;
  /** Password, mutually exclusive with `passwordHash`. Without either, the user signs in by link, code or provider. */
  password?: string;
  /** Password hash: bcrypt, or `pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH`. */
  passwordHash?: string;
  displayName?: string | null;
  avatarUrl?: string | null;
  language?: string | null;
  role?: string;
  verified?: boolean;
  /** Creation time, ISO 8601; now by default. */
  createdAt?: string;
  /** Identities at providers of `auth.oauth`. `subject` is the provider's id of the user. */
  identities?: { provider: string; subject: string; email?: string | null; emailVerified?: boolean }[];
  metadata?: JsonObject;
  appMetadata?: JsonObject;
}

/** Changes of a user. Absent members stay; `metadata` and `appMetadata` are replaced as a whole. */
export interface UserChanges {
  displayName?: string | null;
  avatarUrl?: string | null;
  language?: string | null;
  role?: string;
  emailVisibility?: "public" | "private";
  /** Whether the user is disabled; true ends every session. */
  disabled?: boolean;
  metadata?: JsonObject;
  appMetadata?: JsonObject;
  /**
   * New address. This, `emailVerified`, `phone` and `password` need the scope `auth:credentials:*:write`. A new address or password ends
   * every session.
   */
  email?: string;
  /** Phone number, with `+` and the country, as verified; null removes it. */
  phone?: string | null;
  /** Whether the address is verified; false by default after a change of `email`. */
  emailVerified?: boolean;
  password?: string;
  /** Whether the passkeys stay when a password is set. */
  keepPasskeys?: boolean;
}

/** Sessions of a user, and all ways to sign in. */
export interface SignInMeans {
  /** Live sessions, newest first, at most 100. */
  sessions: {
    id: string;
    createdAt: string;
    lastUsedAt: string;
    expiresAt: string;
    ip: string | null;
    userAgent: string | null;
  }[];
  factors: { id: string; type: "totp" | "phone"; verified: boolean; createdAt: string }[];
  identities: { id: string; provider: string; email: string | null; createdAt: string; lastSignInAt: string }[];
  passkeys: { id: string; name: string | null; deviceType: string; createdAt: string; lastUsedAt: string | null }[];
}

/** Mail held in the outbox: no mail server is configured, or the server runs as a drill. */
export interface OutboxEntry {
  id: string;
  /** Kind of mail, such as `invite`; `app` for mails sent by the config's code. */
  kind: string;
  from: string;
  to: string;
  subject: string;
  sentAt: string;
}

/** Mail with its content. Links and codes are replaced with `[hidden]`. */
export interface OutboxMail extends OutboxEntry {
  text: string;
  html: string | null;
}

/** Numbers of what a deletion has ended. */
export interface DeletionReport {
  /** Records that were changed or deleted because they referred to the user, by `namespace/table`. */
  records: Record<string, number>;
  sessions: number;
  factors: number;
  identities: number;
  passkeys: number;
}

/** Mail with sample data. */
export interface MailSample {
  subject: string;
  text: string;
  html: string;
}

export interface AdminUsers {
  /** Returns a user; null when there is no such user. */
  get(id: string): Promise<AdminUser | null>;
  /** Returns users in order of creation; with `q`, those whose address or name starts with it. */
  list(options?: { limit?: number; cursor?: string | null; q?: string }): Promise<{
    items: UserEntry[];
    /** Cursor of the next page; null on the last one. */
    cursor: string | null;
  }>;
  /** Creates a user. Errors: `conflict` for a known address. */
  create(user: NewUser): Promise<AdminUser>;
  /** Mails a link with which the user sets a password. With `data`, a user who has an account is invited too. */
  invite(invitation: {
    email: string;
    role?: string;
    metadata?: JsonObject;
    language?: string;
    redirectUrl?: string;
    data?: JsonObject;
    /** Id of the user who invites. */
    invitedBy?: string;
  }): Promise<AdminUser>;
  /** Imports up to 1,000 users, all or none. Returns their ids in order. */
  import(users: readonly ImportedUser[]): Promise<string[]>;
  update(id: string, changes: UserChanges): Promise<AdminUser>;
  /** Deletes a user. Returns the numbers of what has ended. Errors: `conflict` where a record's reference forbids it. */
  delete(id: string): Promise<DeletionReport>;
  /** Replaces all custom claims, which the user's next token contains. */
  setClaims(id: string, claims: JsonObject): Promise<void>;
  /** Ends every session of the user. */
  revokeSessions(id: string): Promise<void>;
  /** Mails the user a link that sets a new password (`reset`) or verifies the address. Errors: `conflict`. */
  sendMail(id: string, mail: "reset" | "verification", redirectUrl?: string): Promise<void>;
  /** Removes all second factors and recovery codes of a user. */
  removeFactors(id: string): Promise<void>;
  /** Returns mails in the outbox, newest first. */
  outbox(options?: {
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: OutboxEntry[]; cursor: string | null }>;
  /** Returns one mail of the outbox. Errors: `not_found`. */
  outboxMail(id: string): Promise<OutboxMail>;
  /** Returns a mail of `auth.mail.templates`, such as `invite`, with sample data. Errors: `not_found`. */
  mailTemplate(name: string, options?: { language?: string }): Promise<MailSample>;
  /** Mails it to an address, at most 10 times an hour. Errors: `not_found`, `rate_limited`. */
  testMail(name: string, options: { to: string; language?: string }): Promise<void>;
  /** Returns a user's sessions and ways to sign in. Errors: `not_found`. */
  signInMeans(id: string): Promise<SignInMeans>;
  /** Ends a session, or removes an identity or a passkey, even if it is the last way to sign in. Errors: `not_found`. */
  removeSignInMeans(id: string, kind: "session" | "identity" | "passkey", removedId: string): Promise<void>;
}

const USERS = "/api/auth/admin/users";
const OUTBOX = "/api/auth/admin/outbox";
const MAILS = "/api/admin/mail/templates";
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
  delete: async (id) => (await request<{ report: DeletionReport }>("DELETE", pathOf(id))).report,
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
  mailTemplate: (name, query) =>
    request<MailSample>("GET", `${MAILS}/${encodeURIComponent(name)}/preview`, { query: { ...query } }),
  async testMail(name, body) {
    await request("POST", `${MAILS}/${encodeURIComponent(name)}/test`, { body });
  },
  outboxMail: (id) => request<OutboxMail>("GET", `${OUTBOX}/${encodeURIComponent(id)}`),
  signInMeans: (id) => request<SignInMeans>("GET", `${pathOf(id)}/means`),
  async removeSignInMeans(id, kind, removedId) {
    await request("DELETE", `${pathOf(id)}/${PARTS[kind]}/${encodeURIComponent(removedId)}`);
  },
});
