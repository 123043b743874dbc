import type { Millis } from "../../kernel/clock.ts";
import type { Sql } from "./sql.ts";

export interface Factor {
  id: string;
  userId: string;
  type: "totp";
  /** Encrypted. */
  secret: string;
  verified: boolean;
  /** The latest time step whose code has been used. */
  lastStep: number;
  createdAt: Millis;
}

type FactorRow = Omit<Factor, "verified"> & { verified: number };

const toFactor = (row: FactorRow): Factor => ({ ...row, verified: row.verified === 1 });

export function factorsOfUser(sql: Sql, userId: string): Factor[] {
  return sql
    .query<FactorRow>("SELECT * FROM mfa_factors WHERE userId = ? ORDER BY createdAt, id")
    .all(userId)
    .map(toFactor);
}

export function insertFactor(sql: Sql, factor: Omit<Factor, "verified" | "lastStep">): void {
  sql
    .query("INSERT INTO mfa_factors (id, userId, type, secret, createdAt) VALUES (?, ?, ?, ?, ?)")
    .run(factor.id, factor.userId, factor.type, factor.secret, factor.createdAt);
}

export function useFactorStep(sql: Sql, id: string, step: number): void {
  sql.query("UPDATE mfa_factors SET verified = 1, lastStep = ? WHERE id = ?").run(step, id);
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
