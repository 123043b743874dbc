import { DAY_MS, HOUR_MS, MINUTE_MS } from "../kernel/duration.ts";

/** Events of one track request. Spec: Limits / Analytics. */
export const TRACK_EVENTS_MAX = 100;
/** A track request: as many events of the largest size, escapes included. */
export const TRACK_BODY_MAX_BYTES = 2 * 1024 * 1024;
/** Keys in an event's properties, and their bytes as JSON. Spec: Limits / Analytics. */
export const PROPERTIES_MAX = 50;
export const PROPERTIES_MAX_BYTES = 4_096;
/** Characters of an event's name and of a user's id. */
export const EVENT_NAME_LENGTH_MAX = 256;
export const USER_ID_LENGTH_MAX = 256;
/** How far ahead of the server's clock an event's timestamp may be: clocks of clients are wrong by hours, not by days. */
export const TIMESTAMP_AHEAD_MAX_MS = DAY_MS;

/** Events of a list where the request says nothing, and at most. Spec: Limits / Analytics. */
export const LIST_LIMIT_DEFAULT = 50;
export const LIST_LIMIT_MAX = 1_000;
/** Endpoints named in `topItems`. */
export const TOP_ITEMS_MAX = 50;
/** Points of a time series: 90 days by the minute, and the cut ones at both ends. */
export const SERIES_POINTS_MAX = 130_000;

/** How long what is recorded waits for others, so that all are written together. On disk within a second: decisions 11. */
export const WRITE_DELAY_MS = 400;
/** How long after a failed write the events are tried again. */
export const WRITE_RETRY_MS = 1_000;
/** Rows that one write inserts: about a millisecond. */
export const WRITE_STEP_ROWS = 500;
/** Events that may wait to be written; when there are more, track requests are answered once theirs have been. */
export const WAITING_EVENTS_EASY = 2_000;
/** Past either of these bounds a track request is 503. */
export const WAITING_EVENTS_MAX = 50_000;
export const WAITING_EVENTS_MAX_BYTES = 32 * 1024 * 1024;
/** Rows of the request log that wait to be written; past it requests are counted as dropped. */
export const WAITING_REQUEST_ROWS_MAX = 50_000;
/** The log hears of dropped requests at most this often. */
export const DROP_REPORT_INTERVAL_MS = MINUTE_MS;

/** How long single events and request rows are kept. Spec: Limits / Analytics. */
export const RETENTION_MS = 90 * DAY_MS;
/** What was accepted just inside the retention is on disk well before its day is summed up. */
export const RETENTION_SLACK_MS = HOUR_MS;
/** The first look for days to sum up comes soon after the start, the others at this pace. */
export const SWEEP_FIRST_MS = 2_000;
export const SWEEP_INTERVAL_MS = 15 * MINUTE_MS;
/** The pause between two steps of one sweep, so that requests come in between. */
export const SWEEP_PAUSE_MS = 20;
/** Rows that one step removes. */
export const SWEEP_STEP_ROWS = 1_000;
/** How long the sums of one day may take; they are made in another process. */
export const SUMMARY_TIMEOUT_MS = 10 * MINUTE_MS;
/** Event names kept of one day, the most frequent; the day's totals have all. */
export const SUMMARY_NAMES_MAX = 10_000;

/** Page cache of the file on the main thread, which only writes. */
export const CACHE_KIB = 2_048;
