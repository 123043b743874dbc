import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Default of `audit.days`. */
export const RETENTION_DAYS = 365;
/**
 * Bytes of entries that are kept: of changes, and of sign-ins and failed ones. They are apart, so that guesses displace no change.
 */
export const CHANGES_MAX_BYTES = 2 * 1024 ** 3;
export const SESSIONS_MAX_BYTES = 128 * 1024 ** 2;
/** Failed sign-ins per minute that get an entry of their own; the others of that minute share one. */
export const FAILURES_PER_MINUTE = 30;
export const FAILURES_WINDOW_MS = MINUTE_MS;

/** Entries per page: the default and the maximum. */
export const PAGE_LIMIT_DEFAULT = 50;
export const PAGE_LIMIT_MAX = 200;
/** Maximum length in characters of a filter. */
export const FILTER_LENGTH_MAX = 1_024;

/** Time for which the command line waits for a file that the server locks. */
export const LOCK_TIMEOUT_MS = 10 * SECOND_MS;

/** Delay before waiting entries are taken from the files of their changes, so that many are taken together. */
export const TAKE_DELAY_MS = 100;
export const TAKE_RETRY_MS = 1_000;
/** Bytes of entries taken in one step, which takes a few milliseconds. */
export const TAKE_BYTES = 512 * 1024;

/** Time limit for summing up the bytes of the whole log, which a slow disk reads for a minute. */
export const SIZES_TIMEOUT_MS = 10 * MINUTE_MS;
export const SWEEP_FIRST_MS = 5 * MINUTE_MS;
export const SWEEP_INTERVAL_MS = HOUR_MS;
export const SWEEP_PAUSE_MS = 20;
/** Time span of the log, from its oldest entry on, that one sweep removes: a server that was off for a month needs a day. */
export const SWEPT_AT_ONCE_MS = DAY_MS;
/** Rows removed per step: each may have the entries of a transaction. */
export const SWEEP_STEP_ROWS = 20;

/** Page cache of the log in the server's process, which only writes to it. */
export const CACHE_KIB = 1_024;
export const DAYS_MS = DAY_MS;
