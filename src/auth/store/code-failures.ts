import type { Millis } from "../../kernel/clock.ts";
import type { Sql } from "./sql.ts";

/** Wrong codes under this key since its day began; null when none were counted, or the day is over. */
export function codeFailures(sql: Sql, key: string, now: Millis): { failures: number; endsAt: Millis } | null {
  return sql
    .query<{ failures: number; endsAt: number }>(
      "SELECT failures, endsAt FROM code_failures WHERE key = ? AND endsAt > ?",
    )
    .get(key, now);
}

/** One more; the first begins a day that ends at `endsAt`. */
export function countCodeFailure(sql: Sql, key: string, now: Millis, endsAt: Millis): void {
  sql
    .query(
      `INSERT INTO code_failures (key, failures, endsAt) VALUES (?1, 1, ?3)
       ON CONFLICT (key) DO UPDATE SET
         failures = CASE WHEN endsAt > ?2 THEN failures + 1 ELSE 1 END,
         endsAt = CASE WHEN endsAt > ?2 THEN endsAt ELSE ?3 END`,
    )
    .run(key, now, endsAt);
}

export function hasEndedCodeFailures(sql: Sql, now: Millis): boolean {
  return sql.query("SELECT 1 FROM code_failures WHERE endsAt <= ? LIMIT 1").get(now) !== null;
}

export function deleteEndedCodeFailures(sql: Sql, now: Millis, limit: number): number {
  return sql
    .query("DELETE FROM code_failures WHERE key IN (SELECT key FROM code_failures WHERE endsAt <= ? LIMIT ?)")
    .run(now, limit).changes;
}
