import type { DatabaseFile } from "../db/index.ts";
import { DAY_MS, SECOND_MS } from "../kernel/duration.ts";
import { SUMMARY_NAMES_MAX, SUMMARY_TIMEOUT_MS } from "./limits.ts";

/** What ages: single rows that become sums of a day, and go. */
export interface Summaries {
  /** The day of the oldest row that is not summed up, in milliseconds; null: there is none. */
  oldestDay(): number | null;
  /** Sums up the day, which must be over for good. The sums are made in another process, which `signal` ends. */
  sumUp(day: number, signal: AbortSignal): Promise<void>;
  /** Removes at most `limit` rows of days that are summed up; resolves with how many. */
  removeSummed(limit: number): Promise<number>;
}

interface Aging {
  kind: "events" | "requests";
  /** ?1: from here on. */
  oldest: string;
  /** Milliseconds in one unit of the rows' time. */
  unitMs: number;
  /** ?1 and ?2: the day's first unit, and the next day's. Rows of `insert` without their day. */
  sums: string;
  sumsParams: readonly number[];
  /** ?1 the day, then a row of `sums`. */
  insert: string;
  /** ?1: where what is summed up ends; ?2: how many rows. */
  remove: string;
}

/** Names that are too rare to be kept count in the day's totals, which stand under the empty name. */
const EVENTS: Aging = {
  kind: "events",
  oldest: "SELECT min(timestamp) AS oldest FROM events WHERE timestamp >= ?1",
  unitMs: 1,
  sums: `SELECT '', count(*), count(DISTINCT user_id) FROM events WHERE timestamp >= ?1 AND timestamp < ?2
    UNION ALL SELECT * FROM (
      SELECT name, count(*), count(DISTINCT user_id) FROM events WHERE timestamp >= ?1 AND timestamp < ?2
      GROUP BY name ORDER BY 2 DESC, 1 LIMIT ?3)`,
  sumsParams: [SUMMARY_NAMES_MAX],
  insert: "INSERT OR REPLACE INTO event_days (day, name, events, users) VALUES (?1, ?2, ?3, ?4)",
  remove: `DELETE FROM events WHERE id IN (
    SELECT id FROM events WHERE timestamp < ?1 ORDER BY timestamp LIMIT ?2)`,
};

const REQUEST_SUMS = `sum(requests), sum(iif(status >= 500, requests, 0)), sum(duration_us),
  count(DISTINCT nullif(user_id, ''))`;
const REQUESTS_OF_DAY = "second >= ?1 AND second < ?2";

const REQUESTS: Aging = {
  kind: "requests",
  oldest: "SELECT min(second) AS oldest FROM requests WHERE second >= ?1",
  unitMs: SECOND_MS,
  sums: `SELECT '', 0, ${REQUEST_SUMS} FROM requests WHERE ${REQUESTS_OF_DAY}
    UNION ALL SELECT category, 0, ${REQUEST_SUMS} FROM requests JOIN endpoints ON endpoints.id = endpoint
      WHERE ${REQUESTS_OF_DAY} GROUP BY category
    UNION ALL SELECT category, endpoint, ${REQUEST_SUMS} FROM requests JOIN endpoints ON endpoints.id = endpoint
      WHERE ${REQUESTS_OF_DAY} GROUP BY endpoint`,
  sumsParams: [],
  insert: `INSERT OR REPLACE INTO request_days (day, category, endpoint, requests, errors, duration_us, users)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`,
  remove: `DELETE FROM requests WHERE (second, endpoint, status, user_id) IN (
    SELECT second, endpoint, status, user_id FROM requests WHERE second < ?1 ORDER BY second LIMIT ?2)`,
};

export const eventSummaries = (file: DatabaseFile): Summaries => createSummaries(file, EVENTS);
export const requestSummaries = (file: DatabaseFile): Summaries => createSummaries(file, REQUESTS);

function createSummaries(file: DatabaseFile, aging: Aging): Summaries {
  const { kind, unitMs } = aging;
  const untilMs = (): number =>
    file.query<{ until: number }>("SELECT until FROM summarized WHERE kind = ?1").get(kind)?.until ?? 0;
  return {
    oldestDay() {
      const { oldest = null } = file.query<{ oldest: number | null }>(aging.oldest).get(untilMs() / unitMs) ?? {};
      return oldest === null ? null : Math.floor((oldest * unitMs) / DAY_MS) * DAY_MS;
    },
    async sumUp(day, signal) {
      const units = [day / unitMs, (day + DAY_MS) / unitMs];
      const params = [...units, ...aging.sumsParams];
      const sums = await file.read(aging.sums, params, { timeoutMs: SUMMARY_TIMEOUT_MS, signal });
      // Sums and the end of the single rows change in one moment: a reader finds the day in one of them.
      await file.write((tx) => {
        const insert = tx.query(aging.insert);
        // The columns are names and counts, in the order of the statement.
        for (const row of sums) insert.run(day, ...(row as (string | number)[]));
        tx.query("UPDATE summarized SET until = ?2 WHERE kind = ?1").run(kind, day + DAY_MS);
        return null;
      });
    },
    removeSummed(limit) {
      const until = untilMs() / unitMs;
      const { oldest = null } = file.query<{ oldest: number | null }>(aging.oldest).get(0) ?? {};
      if (oldest === null || oldest >= until) return Promise.resolve(0);
      return file.write((tx) => tx.query(aging.remove).run(until, limit).changes);
    },
  };
}
