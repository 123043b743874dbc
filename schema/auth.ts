import { sql } from "drizzle-orm";
// biome-ignore lint/suspicious/noDeprecatedImports: another overload of primaryKey is meant
import { blob, index, integer, primaryKey, sqliteTable, text, unique, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { JsonObject } from "../src/kernel/json/json.ts";

/**
 * Accounts. `seq` is the order of creation and the cursor of lists; times are milliseconds since 1970. `hasSignedIn`: whether the
 * user has ever had a session. `language`: BCP 47; `phone`: verified, E.164.
 */
export const users = sqliteTable(
  "users",
  {
    seq: integer().primaryKey({ autoIncrement: true }),
    id: text().notNull().unique(),
    email: text().unique(),
    emailVerified: integer({ mode: "boolean" }).notNull().default(false),
    emailVisibility: text({ enum: ["public", "private"] })
      .notNull()
      .default("private"),
    passwordHash: text(),
    displayName: text(),
    avatarUrl: text(),
    role: text().notNull().default("user"),
    isAnonymous: integer({ mode: "boolean" }).notNull().default(false),
    disabled: integer({ mode: "boolean" }).notNull().default(false),
    metadata: text({ mode: "json" }).$type<JsonObject>().notNull().default({}),
    appMetadata: text({ mode: "json" }).$type<JsonObject>().notNull().default({}),
    customClaims: text({ mode: "json" }).$type<JsonObject>().notNull().default({}),
    createdAt: integer().notNull(),
    updatedAt: integer().notNull(),
    hasSignedIn: integer({ mode: "boolean" }).notNull().default(false),
    language: text(),
    phone: text(),
  },
  (table) => [
    index("users_displayName").on(sql`${table.displayName} COLLATE NOCASE`, table.seq),
    // Index of the few who have one.
    uniqueIndex("users_phone").on(table.phone).where(sql`${table.phone} IS NOT NULL`),
    // Index of the few addresses that may have other forms, which each start checks.
    index("users_otherForms").on(table.email).where(sql`${table.email} GLOB '*[^ -~]*'`),
  ],
);

const userId = () =>
  text()
    .notNull()
    .references(() => users.id, { onDelete: "cascade" });

/**
 * Sessions of users. `generation` is that of the refresh token that is valid; `rotations` when the last ones were replaced, newest
 * first. `provedAt`: when the user last signed in or confirmed the password. `tokenVersion`: that of the access tokens that are
 * valid. `invitation`: the data of the invitation whose acceptance began it.
 */
export const sessions = sqliteTable(
  "sessions",
  {
    id: text().primaryKey().notNull(),
    userId: userId(),
    createdAt: integer().notNull(),
    lastUsedAt: integer().notNull(),
    expiresAt: integer().notNull(),
    ip: text(),
    userAgent: text(),
    generation: integer().notNull().default(0),
    rotations: text({ mode: "json" }).$type<number[]>().notNull().default([]),
    provedAt: integer().notNull().default(0),
    tokenVersion: integer().notNull().default(0),
    invitation: text({ mode: "json" }).$type<JsonObject>(),
  },
  (table) => [
    index("sessions_userId").on(table.userId, table.createdAt),
    index("sessions_expiresAt").on(table.expiresAt),
  ],
);

/** Secrets that are valid once: tokens and codes in mail, MFA tickets, OAuth states, WebAuthn challenges. Only hashes are kept. */
export const oneTimeSecrets = sqliteTable(
  "one_time_secrets",
  {
    hash: blob({ mode: "buffer" }).$type<Uint8Array>().primaryKey().notNull(),
    purpose: text({
      enum: [
        "verify-email",
        "reset-password",
        "magic-link",
        "email-otp",
        "phone-otp",
        "phone-change",
        "phone-factor",
        "email-change",
        "invite",
        "mfa-ticket",
        "oauth-state",
        "oauth-code",
        "oauth-link",
        "oauth-id-token",
        "passkey-register",
        "passkey-sign-in",
        "page-code",
        "page-ticket",
      ],
    }).notNull(),
    userId: text().references(() => users.id, { onDelete: "cascade" }),
    payload: text({ mode: "json" }).$type<JsonObject>().notNull().default({}),
    attempts: integer().notNull().default(0),
    expiresAt: integer().notNull(),
  },
  (table) => [
    index("one_time_secrets_expiresAt").on(table.expiresAt),
    index("one_time_secrets_userId").on(table.userId, table.purpose),
  ],
);

/** Wrong six-digit codes of the last day, by purpose and owner. */
export const codeFailures = sqliteTable(
  "code_failures",
  {
    key: text().primaryKey().notNull(),
    failures: integer().notNull(),
    endsAt: integer().notNull(),
  },
  (table) => [index("code_failures_endsAt").on(table.endsAt)],
);

/**
 * MFA factors. `secret` is encrypted; `usedSteps` are the time steps whose codes have been used recently. A phone has neither: its number
 * is that of the account.
 */
export const mfaFactors = sqliteTable(
  "mfa_factors",
  {
    id: text().primaryKey().notNull(),
    userId: userId(),
    type: text({ enum: ["totp", "phone"] }).notNull(),
    secret: text().notNull(),
    verified: integer({ mode: "boolean" }).notNull().default(false),
    usedSteps: text({ mode: "json" }).$type<number[]>().notNull().default([]),
    createdAt: integer().notNull(),
  },
  (table) => [index("mfa_factors_userId").on(table.userId)],
);

export const mfaRecoveryCodes = sqliteTable(
  "mfa_recovery_codes",
  {
    hash: blob({ mode: "buffer" }).$type<Uint8Array>().notNull(),
    userId: userId(),
    factorId: text()
      .notNull()
      .references(() => mfaFactors.id, { onDelete: "cascade" }),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.hash] }),
    index("mfa_recovery_codes_factorId").on(table.factorId),
  ],
);

/**
 * Accounts elsewhere (OAuth, OpenID Connect) that sign in here. `emailVerified`: whether the provider has said that the user's
 * present address is verified there. `validFrom`: tokens of an issuer are valid that were issued later.
 * `tokens`: those of the provider, encrypted.
 */
export const identities = sqliteTable(
  "identities",
  {
    id: text().primaryKey().notNull(),
    userId: userId(),
    provider: text().notNull(),
    subject: text().notNull(),
    email: text(),
    createdAt: integer().notNull(),
    lastSignInAt: integer().notNull(),
    emailVerified: integer({ mode: "boolean" }).notNull().default(true),
    validFrom: integer().notNull().default(0),
    tokens: text(),
  },
  (table) => [unique().on(table.provider, table.subject), index("identities_userId").on(table.userId)],
);

/** WebAuthn credentials; `id` is the credential id in base64url. */
export const passkeys = sqliteTable(
  "passkeys",
  {
    id: text().primaryKey().notNull(),
    userId: userId(),
    publicKey: blob({ mode: "buffer" }).$type<Uint8Array<ArrayBuffer>>().notNull(),
    counter: integer().notNull().default(0),
    transports: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    deviceType: text().notNull(),
    backedUp: integer({ mode: "boolean" }).notNull().default(false),
    name: text(),
    createdAt: integer().notNull(),
    lastUsedAt: integer(),
  },
  (table) => [index("passkeys_userId").on(table.userId)],
);

/**
 * Progress of the records of accounts in following them: one row, where the config has a table of users. `place` is that table,
 * `lastMark` the last number of a mark, `seenCount` the highest count of the table's file that this one relies on.
 */
export const userRecords = sqliteTable("user_records", {
  id: integer().primaryKey(),
  place: text().notNull(),
  lastMark: integer().notNull().default(0),
  seenCount: integer().notNull().default(0),
  /** The last change of an account that an update of its record has asked for, and that the account has. */
  lastAsked: integer().notNull().default(0),
});

/** Accounts whose records may differ from them. A later mark has a higher number. */
export const userMarks = sqliteTable("user_marks", {
  userId: text().primaryKey().notNull(),
  mark: integer().notNull(),
});
