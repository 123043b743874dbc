import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Seconds that one histogram covers. */
export const MINUTE_S = MINUTE_MS / SECOND_MS;

/** Events of one track request. */
export const TRACK_EVENTS_MAX = 100;
/** Bytes of a track request's body: room for the maximum number of events of maximum size, escapes included. */
export const TRACK_BODY_MAX_BYTES = 2 * 1024 * 1024;
/** Keys of an event's properties, and their size as JSON. */
export const PROPERTIES_MAX = 50;
export const PROPERTIES_MAX_BYTES = 4_096;
/** Characters of an event's name and of a user id. */
export const EVENT_NAME_LENGTH_MAX = 256;
export const USER_ID_LENGTH_MAX = 256;
/** Steps of a funnel. */
export const FUNNEL_STEPS_MIN = 2;
export const FUNNEL_STEPS_MAX = 5;
/** Time by which an event's timestamp may be ahead of the server's clock: clocks of clients are wrong by hours, not days. */
export const TIMESTAMP_AHEAD_MAX_MS = DAY_MS;

/** Events per page of a list: the default and the maximum. */
export const LIST_LIMIT_DEFAULT = 50;
export const LIST_LIMIT_MAX = 1_000;
/** Entries of `topItems`. */
export const TOP_ITEMS_MAX = 50;
/** Entries of `targets`. */
export const TARGETS_MAX = 1_000;
/** Points of a time series: 90 days by the minute, plus partial points at both ends. */
export const SERIES_POINTS_MAX = 130_000;

/** Time that recorded rows wait to be batched. With the write itself they are on disk within a second. */
export const WRITE_DELAY_MS = 400;
/** Delay before a failed write is retried. */
export const WRITE_RETRY_MS = 1_000;
/** Rows and characters per write, which takes about a millisecond. */
export const WRITE_STEP_ROWS = 500;
export const WRITE_STEP_LENGTH = 256 * 1024;
/** Above this number of waiting events, a track request is answered only after its events have been written. */
export const WAITING_EVENTS_SOFT_MAX = 2_000;
/** Above either of these bounds a track request is 503. */
export const WAITING_EVENTS_MAX = 50_000;
export const WAITING_EVENTS_MAX_BYTES = 32 * 1024 * 1024;
/** Waiting rows of the request log; above it requests are counted as dropped. */
export const WAITING_REQUEST_ROWS_MAX = 50_000;
/** The server's log reports dropped requests at most this often. */
export const DROP_REPORT_INTERVAL_MS = MINUTE_MS;

/** Time for which single events and request rows are kept. */
export const RETENTION_MS = 90 * DAY_MS;
/** Events accepted just inside the retention are on disk well before their day is summarised. */
export const RETENTION_SLACK_MS = HOUR_MS;
/** The first check for days to summarise comes soon after the start, later ones at this interval. */
export const SWEEP_FIRST_MS = 2_000;
export const SWEEP_INTERVAL_MS = 15 * MINUTE_MS;
/** The pause between two steps of one sweep, so that requests are handled in between. */
export const SWEEP_PAUSE_MS = 20;
/** Rows removed per step. */
export const SWEEP_STEP_ROWS = 1_000;
/** Time limit for computing the summary of one day, in a query process. */
export const SUMMARY_TIMEOUT_MS = 10 * MINUTE_MS;
/** Event names kept in the summary of one day, the most frequent ones; the totals include all names. */
export const SUMMARY_NAMES_MAX = 10_000;

/** Highest latency in the histograms, 35 minutes: longer ones count as this. */
export const LATENCY_MAX_US = 2 ** 31 - 1;
/** Default of `analytics.slowMs`: requests that take at least this long are kept individually. */
export const SLOW_MS = 500;
/** Retention of slow requests, and how many are kept, the newest ones. With their paths they take at most about 15 MB. */
export const SLOW_RETENTION_MS = 7 * DAY_MS;
export const SLOW_REQUESTS_MAX = 10_000;
/** Slow requests waiting to be written; further ones are not kept. */
export const WAITING_SLOW_MAX = 1_000;
/** Characters of a path that are kept. */
export const SLOW_PATH_LENGTH_MAX = 1_024;

/** KiB of the file's page cache in the server's process, which only writes to it. */
export const CACHE_KIB = 2_048;
