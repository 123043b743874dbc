import type { DatabaseFile } from "../../db/index.ts";
import { DAY_MS, SECOND_MS } from "../../kernel/duration.ts";
import { SUMMARY_NAMES_MAX, SUMMARY_TIMEOUT_MS } from "../limits.ts";

/** What ages: single rows that become sums of a day, and go. */
export interface Summaries {
  /** The day of the oldest row, in milliseconds; null: there is none. Rows that are summed up must have been removed. */
  oldestDay(): number | null;
  /**
   * Sums up the day, which must be over for good. Where it has sums already, as after a clock that was wrong, they grow: a
   * user of both counts twice then. The sums are made in another process, which `signal` ends.
   */
  sumUp(day: number, signal: AbortSignal): Promise<void>;
  /** Removes at most `limit` rows of the day that is summed up; resolves with how many. */
  removeSummed(limit: number): Promise<number>;
}

interface Aging {
  kind: "events" | "requests";
  oldest: string;
  /** Milliseconds in one unit of the rows' time. */
  unitMs: number;
  /** ?1 and ?2: the day's first unit, and the next day's. Rows of `insert` without their day. */
  sums: string;
  sumsParams: readonly number[];
  /** ?1 the day, then a row of `sums`. */
  insert: string;
  /** ?1 and ?2: where what is summed up begins and ends; ?3: how many rows. */
  remove: string;
}

/** Names that are too rare to be kept count in the day's totals, which stand under the empty name. */
const EVENTS: Aging = {
  kind: "events",
  oldest: "SELECT min(timestamp) AS oldest FROM events",
  unitMs: 1,
  sums: `SELECT '', count(*), count(DISTINCT user_id) FROM events WHERE timestamp >= ?1 AND timestamp < ?2
    UNION ALL SELECT * FROM (
      SELECT name, count(*), count(DISTINCT user_id) FROM events WHERE timestamp >= ?1 AND timestamp < ?2
      GROUP BY name ORDER BY 2 DESC, 1 LIMIT ?3)`,
  sumsParams: [SUMMARY_NAMES_MAX],
  insert: `INSERT INTO event_days (day, name, events, users) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET events = events + excluded.events, users = users + excluded.users`,
  remove: `DELETE FROM events WHERE id IN (
    SELECT id FROM events WHERE timestamp >= ?1 AND timestamp < ?2 ORDER BY timestamp LIMIT ?3)`,
};

const REQUEST_SUMS = `sum(requests), sum(iif(status >= 500, requests, 0)), sum(duration_us),
  count(DISTINCT nullif(user_id, ''))`;
const REQUESTS_OF_DAY = "second >= ?1 AND second < ?2";

const REQUESTS: Aging = {
  kind: "requests",
  oldest: "SELECT min(second) AS oldest FROM requests",
  unitMs: SECOND_MS,
  sums: `SELECT '', 0, ${REQUEST_SUMS} FROM requests WHERE ${REQUESTS_OF_DAY}
    UNION ALL SELECT category, 0, ${REQUEST_SUMS} FROM requests JOIN endpoints ON endpoints.id = endpoint
      WHERE ${REQUESTS_OF_DAY} GROUP BY category
    UNION ALL SELECT category, endpoint, ${REQUEST_SUMS} FROM requests JOIN endpoints ON endpoints.id = endpoint
      WHERE ${REQUESTS_OF_DAY} GROUP BY endpoint`,
  sumsParams: [],
  insert: `INSERT INTO request_days (day, category, endpoint, requests, errors, duration_us, users)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors,
      duration_us = duration_us + excluded.duration_us, users = users + excluded.users`,
  remove: `DELETE FROM requests WHERE (second, endpoint, status, user_id) IN (
    SELECT second, endpoint, status, user_id FROM requests WHERE second >= ?1 AND second < ?2 ORDER BY second LIMIT ?3)`,
};

const SUMMED = "SELECT since, until FROM summarized WHERE kind = ?1";
const SET_SUMMED = "UPDATE summarized SET since = ?2, until = ?3 WHERE kind = ?1";

export const eventSummaries = (file: DatabaseFile): Summaries => createSummaries(file, EVENTS);
export const requestSummaries = (file: DatabaseFile): Summaries => createSummaries(file, REQUESTS);

function createSummaries(file: DatabaseFile, aging: Aging): Summaries {
  const { kind, unitMs } = aging;
  /** What is summed up and not removed; null: nothing. */
  const summed = (): { since: number; until: number } | null => {
    const row = file.query<{ since: number; until: number }>(SUMMED).get(kind);
    return row === null || row.until === 0 ? null : row;
  };
  return {
    oldestDay() {
      const { oldest = null } = file.query<{ oldest: number | null }>(aging.oldest).get() ?? {};
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
        tx.query(SET_SUMMED).run(kind, day, day + DAY_MS);
        return null;
      });
    },
    async removeSummed(limit) {
      const range = summed();
      if (range === null) return 0;
      return file.write((tx) => {
        const { changes } = tx.query(aging.remove).run(range.since / unitMs, range.until / unitMs, limit);
        if (changes < limit) tx.query(SET_SUMMED).run(kind, 0, 0);
        return changes;
      });
    },
  };
}
