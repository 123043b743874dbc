import type { Millis } from "../../kernel/clock.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Sql } from "./sql.ts";

export type SecretPurpose =
  | "verify-email"
  | "reset-password"
  | "magic-link"
  | "email-otp"
  | "email-change"
  | "mfa-ticket"
  | "oauth-state"
  | "passkey-register"
  | "passkey-sign-in";

export interface OneTimeSecret {
  purpose: SecretPurpose;
  userId: string | null;
  payload: JsonObject;
  attempts: number;
  expiresAt: Millis;
}

/** A second one under the same hash (a new code for the same address) replaces the first. */
export function putSecret(sql: Sql, hash: Uint8Array, secret: Omit<OneTimeSecret, "attempts">): void {
  sql
    .query(
      `INSERT OR REPLACE INTO one_time_secrets (hash, purpose, userId, payload, attempts, expiresAt)
       VALUES (?, ?, ?, ?, 0, ?)`,
    )
    .run(hash, secret.purpose, secret.userId, JSON.stringify(secret.payload), secret.expiresAt);
}

/** null when unknown, of another purpose or expired. */
export function findSecret(sql: Sql, hash: Uint8Array, purpose: SecretPurpose, now: Millis): OneTimeSecret | null {
  const row = sql
    .query<{ userId: string | null; payload: string; attempts: number; expiresAt: number }>(
      "SELECT userId, payload, attempts, expiresAt FROM one_time_secrets WHERE hash = ? AND purpose = ? AND expiresAt > ?",
    )
    .get(hash, purpose, now);
  // What the store wrote itself is an object.
  return row === null ? null : { ...row, purpose, payload: JSON.parse(row.payload) as JsonObject };
}

export function deleteSecret(sql: Sql, hash: Uint8Array): void {
  sql.query("DELETE FROM one_time_secrets WHERE hash = ?").run(hash);
}

export function countAttempt(sql: Sql, hash: Uint8Array): void {
  sql.query("UPDATE one_time_secrets SET attempts = attempts + 1 WHERE hash = ?").run(hash);
}

export function deleteSecretsOfUser(sql: Sql, userId: string, purposes: readonly SecretPurpose[] | "all"): void {
  if (purposes === "all") sql.query("DELETE FROM one_time_secrets WHERE userId = ?").run(userId);
  else for (const purpose of purposes) deletePurpose(sql, userId, purpose);
}

function deletePurpose(sql: Sql, userId: string, purpose: SecretPurpose): void {
  sql.query("DELETE FROM one_time_secrets WHERE userId = ? AND purpose = ?").run(userId, purpose);
}

/** Whether anything waits for `deleteExpiredSecrets`. */
export function hasExpiredSecrets(sql: Sql, now: Millis): boolean {
  return sql.query("SELECT 1 FROM one_time_secrets WHERE expiresAt <= ? LIMIT 1").get(now) !== null;
}

export function deleteExpiredSecrets(sql: Sql, now: Millis, limit: number): number {
  return sql
    .query(
      "DELETE FROM one_time_secrets WHERE hash IN (SELECT hash FROM one_time_secrets WHERE expiresAt <= ? LIMIT ?)",
    )
    .run(now, limit).changes;
}
