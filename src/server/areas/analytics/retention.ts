import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import type { DatabaseFile } from "../../db/index.ts";
import {
  RETENTION_MS,
  RETENTION_SLACK_MS,
  SUMMARY_NAMES_MAX,
  SUMMARY_TIMEOUT_MS,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
} from "./limits.ts";
import type { SlowRequests } from "./slow-requests.ts";

/**
 * Summarises days older than RETENTION_MS, oldest first, and removes their rows in steps of bounded size. The returned
 * function stops it and resolves when no step is running. [AN19]
 */
export function startRetention(deps: {
  summaries: readonly Summaries[];
  slowRequests: Pick<SlowRequests, "sweep">;
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { summaries, slowRequests, clock, logger } = deps;
  /** Runs one step. Resolves to whether another one is due immediately. */
  const stepOf = async (summary: Summaries, stopping: AbortSignal): Promise<boolean> => {
    if ((await summary.removeSummed(SWEEP_STEP_ROWS)) === SWEEP_STEP_ROWS) return true;
    const day = summary.oldestDay();
    if (day !== null && day + DAY_MS + RETENTION_MS + RETENTION_SLACK_MS <= clock.now()) {
      await summary.sumUp(day, stopping);
      return true;
    }
    return false;
  };
  return startSweeping({
    clock,
    firstMs: SWEEP_FIRST_MS,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep(stopping) {
      let isMore = await slowRequests.sweep(clock.now());
      for (const summary of summaries) if (!stopping.aborted && (await stepOf(summary, stopping))) isMore = true;
      return isMore;
    },
    onFailure: (cause) => logger.error("analytics: summarising old days failed", { cause }),
  });
}

interface Source {
  kind: "events" | "requests" | "latencies";
  oldest: string;
  /** Milliseconds in one unit of the rows' time. */
  unitMs: number;
  /** SQL that returns rows for `insert`, without the day. ?1 and ?2: the first unit of the day and of the next day. */
  sums: string;
  sumsParams: readonly number[];
  /** SQL that inserts a row. ?1: the day; then the columns of `sums`. */
  insert: string;
  /** SQL that removes rows. ?1 and ?2: the summarised range; ?3: the maximum number of rows. */
  remove: string;
}

/** Source of events. The totals of a day have the empty name; they include names that are too rare to be kept [AN21]. */
const EVENTS: Source = {
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
  count(DISTINCT nullif(user_id, '')), sum(iif(status >= 400 AND status < 500, requests, 0))`;
const REQUESTS_OF_DAY = "second >= ?1 AND second < ?2";

const REQUESTS: Source = {
  kind: "requests",
  oldest: "SELECT min(second) AS oldest FROM requests",
  unitMs: SECOND_MS,
  sums: `SELECT '', 0, ${REQUEST_SUMS} FROM requests WHERE ${REQUESTS_OF_DAY}
    UNION ALL SELECT category, 0, ${REQUEST_SUMS} FROM requests JOIN endpoints ON endpoints.id = endpoint
      WHERE ${REQUESTS_OF_DAY} GROUP BY category
    UNION ALL SELECT category, endpoint, ${REQUEST_SUMS} FROM requests JOIN endpoints ON endpoints.id = endpoint
      WHERE ${REQUESTS_OF_DAY} GROUP BY endpoint`,
  sumsParams: [],
  insert: `INSERT INTO request_days (day, category, endpoint, requests, errors, duration_us, users, errors_4xx)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors,
      duration_us = duration_us + excluded.duration_us, users = users + excluded.users,
      errors_4xx = errors_4xx + excluded.errors_4xx`,
  remove: `DELETE FROM requests WHERE (second, endpoint, status, user_id) IN (
    SELECT second, endpoint, status, user_id FROM requests WHERE second >= ?1 AND second < ?2 ORDER BY second LIMIT ?3)`,
};

const LATENCIES: Source = {
  kind: "latencies",
  oldest: "SELECT min(minute) AS oldest FROM latencies",
  unitMs: MINUTE_MS,
  sums: `SELECT endpoint, bucket, sum(requests) FROM latencies WHERE minute >= ?1 AND minute < ?2
    GROUP BY endpoint, bucket`,
  sumsParams: [],
  insert: `INSERT INTO latency_days (day, endpoint, bucket, requests) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests`,
  remove: `DELETE FROM latencies WHERE (minute, endpoint, bucket) IN (
    SELECT minute, endpoint, bucket FROM latencies WHERE minute >= ?1 AND minute < ?2 ORDER BY minute LIMIT ?3)`,
};

const SUMMED = "SELECT since, until FROM summarized WHERE kind = ?1";
const SET_SUMMED = "UPDATE summarized SET since = ?2, until = ?3 WHERE kind = ?1";

export const eventSummaries = (file: DatabaseFile): Summaries => createSummaries(file, EVENTS);
export const latencySummaries = (file: DatabaseFile): Summaries => createSummaries(file, LATENCIES);
export const requestSummaries = (file: DatabaseFile): Summaries => createSummaries(file, REQUESTS);

/** Summaries of days, which replace the rows of old days. */
export type Summaries = ReturnType<typeof createSummaries>;

function createSummaries(file: DatabaseFile, source: Source) {
  const { kind, unitMs } = source;
  /** Returns the range that is summarised but not fully removed; null: none. */
  const summed = (): { since: number; until: number } | null => {
    const row = file.query<{ since: number; until: number }>(SUMMED).get(kind);
    return row === null || row.until === 0 ? null : row;
  };
  return {
    /** Returns the start of the oldest row's day, in milliseconds; null: no rows. Rows of summarised days must be removed before. */
    oldestDay(): number | null {
      const { oldest = null } = file.query<{ oldest: number | null }>(source.oldest).get() ?? {};
      return oldest === null ? null : Math.floor((oldest * unitMs) / DAY_MS) * DAY_MS;
    },
    /**
     * Summarises a day that has ended. If it has a summary already [AN100], the numbers are added. The sums are computed in a
     * query process, which `signal` ends.
     */
    async sumUp(day: number, signal: AbortSignal): Promise<void> {
      const units = [day / unitMs, (day + DAY_MS) / unitMs];
      const params = [...units, ...source.sumsParams];
      const sums = await file.read(source.sums, params, { timeoutMs: SUMMARY_TIMEOUT_MS, signal });
      // The sums and the range that excludes the rows change in one transaction, so readers count the day exactly once [AN20].
      await file.write((tx) => {
        const insert = tx.query(source.insert);
        // The cast follows the columns of the statement: names and counts.
        for (const row of sums) insert.run(day, ...(row as (string | number)[]));
        tx.query(SET_SUMMED).run(kind, day, day + DAY_MS);
        return null;
      });
    },
    /** Removes at most `limit` rows of the summarised day; resolves to their number. */
    async removeSummed(limit: number): Promise<number> {
      const range = summed();
      if (range === null) return 0;
      return file.write((tx) => {
        const { changes } = tx.query(source.remove).run(range.since / unitMs, range.until / unitMs, limit);
        if (changes < limit) tx.query(SET_SUMMED).run(kind, 0, 0);
        return changes;
      });
    },
  };
}
