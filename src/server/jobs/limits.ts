import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/** Bytes of a job's data as JSON. */
export const DATA_MAX_BYTES = 1024 * 1024;
/** Length in characters from which data is parsed over several turns of the event loop. */
export const SLICED_DATA_MIN_LENGTH = 256 * 1024;
/** Maximum length in characters of an id, a key and a group. */
export const KEY_LENGTH_MAX = 512;
/** A hundred years: a longer delay is a mistake. */
export const DELAY_MAX_SECONDS = 100 * 365 * 24 * 3600;
/** Length in characters to which a stored error is cut. */
export const ERROR_LENGTH_MAX = 2_000;

/** Jobs that wait to be written; further ones are refused. */
export const UNWRITTEN_MAX = 20_000;
/** Jobs that one write adds, and jobs that one step of the dispatcher starts, so that other writes run in between. */
export const JOBS_PER_WRITE_MAX = 100;
/** Bytes of data, approximately, of the jobs of one name that one step starts. */
export const CLAIM_BYTES = 4 * 1024 * 1024;

/**
 * Least time between the starts of two steps of the dispatcher while requests come: at the default concurrency some 2,000 small
 * jobs of a name run in a second then. Without requests there is no pause.
 */
export const STEP_PAUSE_MS = 2;

/** Bounds of the backoff: the delay before the second try is at least the first; it doubles with each further try. */
export const BACKOFF_FIRST_MS = SECOND_MS;
export const BACKOFF_MAX_MS = HOUR_MS;
/** Delay before a retry of a write of the queue itself, for instance while the disk is full. */
export const WRITE_RETRY_MS = SECOND_MS;
/** The longest sleep while jobs wait: a clock that is set forward is noticed after this time. */
export const SLEEP_MAX_MS = MINUTE_MS;

/** Retention of jobs that are done, and of jobs that have failed. */
export const DONE_RETENTION_MS = 7 * DAY_MS;
export const FAILED_RETENTION_MS = 30 * DAY_MS;
/** Maximum number of done jobs, and of failed ones, that are kept; above it the oldest are removed before their retention ends. */
export const FINISHED_MAX = 1_000_000;
export const SWEEP_FIRST_MS = MINUTE_MS;
export const SWEEP_INTERVAL_MS = 10 * MINUTE_MS;
/** Pause between two steps of a sweep, in which requests are served. */
export const SWEEP_PAUSE_MS = 20;
/** Jobs that one step of a sweep removes, and approximate bytes of their data. */
export const SWEEP_STEP_JOBS = 200;
export const SWEEP_STEP_BYTES = 4 * 1024 * 1024;

/** Page cache of jobs.db. */
export const CACHE_KIB = 4096;

/** Defaults of jobs and schedules in the config. */
export const JOB_RETRIES_DEFAULT = 5;
export const JOB_TIMEOUT_DEFAULT_SECONDS = 60;
export const JOB_CONCURRENCY_DEFAULT = 4;
export const CRON_RETRIES_DEFAULT = 0;
export const CRON_TIMEOUT_DEFAULT_SECONDS = 3600;

/** Jobs of a page: by default, and at most. */
export const LIST_LIMIT_DEFAULT = 50;
export const LIST_LIMIT_MAX = 200;
/** Bytes of data after which a page ends. */
export const LIST_MAX_BYTES = 2 * 1024 * 1024;
/** Next times of a schedule that administrators see. */
export const NEXT_RUNS_SHOWN = 5;
