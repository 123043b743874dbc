import type { Millis } from "../../kernel/clock.ts";
import type { Sql } from "./sql.ts";

export interface Factor {
  id: string;
  userId: string;
  type: "totp";
  /** Encrypted. */
  secret: string;
  verified: boolean;
  /** The time steps whose codes have been used, as long as they could be used again. */
  usedSteps: number[];
  createdAt: Millis;
}

type FactorRow = Omit<Factor, "verified" | "usedSteps"> & { verified: number; usedSteps: string };

const toFactor = (row: FactorRow): Factor => ({
  ...row,
  verified: row.verified === 1,
  // What the store wrote itself is an array of numbers.
  usedSteps: JSON.parse(row.usedSteps) as number[],
});

export function factorsOfUser(sql: Sql, userId: string): Factor[] {
  return sql
    .query<FactorRow>("SELECT * FROM mfa_factors WHERE userId = ? ORDER BY createdAt, id")
    .all(userId)
    .map(toFactor);
}

export function insertFactor(sql: Sql, factor: Omit<Factor, "verified" | "usedSteps">): void {
  sql
    .query("INSERT INTO mfa_factors (id, userId, type, secret, createdAt) VALUES (?, ?, ?, ?, ?)")
    .run(factor.id, factor.userId, factor.type, factor.secret, factor.createdAt);
}

/** A factor whose code has been right is verified. */
export function setUsedSteps(sql: Sql, id: string, usedSteps: readonly number[]): void {
  sql.query("UPDATE mfa_factors SET verified = 1, usedSteps = ? WHERE id = ?").run(JSON.stringify(usedSteps), id);
}

/** Recovery codes go with their factor. `verified: null` means either kind. */
export function deleteFactors(sql: Sql, userId: string, verified: boolean | null): void {
  sql.query("DELETE FROM mfa_factors WHERE userId = ?1 AND (?2 IS NULL OR verified = ?2)").run(userId, verified);
}

export function insertRecoveryCodes(sql: Sql, userId: string, factorId: string, hashes: readonly Uint8Array[]): void {
  const insert = sql.query("INSERT INTO mfa_recovery_codes (userId, factorId, hash) VALUES (?, ?, ?)");
  for (const hash of hashes) insert.run(userId, factorId, hash);
}

/** Whether there was one: it is gone now. */
export function takeRecoveryCode(sql: Sql, userId: string, hash: Uint8Array): boolean {
  return (
    sql
      .query(
        `DELETE FROM mfa_recovery_codes WHERE userId = ? AND hash = ?
         AND factorId IN (SELECT id FROM mfa_factors WHERE verified = 1)`,
      )
      .run(userId, hash).changes > 0
  );
}
