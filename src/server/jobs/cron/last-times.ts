import type { Millis } from "../../../kernel/clock.ts";
import type { Transaction } from "../../db/index.ts";

const LAST = "SELECT last_at AS lastAt FROM schedules WHERE name = ?1";
const NOTE = `INSERT INTO schedules (name, last_at) VALUES (?1, ?2)
  ON CONFLICT (name) DO UPDATE SET last_at = max(last_at, ?2)`;

/** The last time for which a schedule has made a job, or skipped one; null before the first. */
export const lastTime = (from: Pick<Transaction, "query">, name: string): Millis | null =>
  from.query<{ lastAt: number }>(LAST).get(name)?.lastAt ?? null;

export function noteTime(tx: Transaction, name: string, at: Millis): null {
  tx.query(NOTE).run(name, at);
  return null;
}
