import { MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Rows of an outbox that are passed to the queue in one step, and bytes of their data: a few milliseconds of work. */
export const DRAIN_ROWS_MAX = 250;
export const DRAIN_BYTES_MAX = 512 * 1024;
/** Pause after a step that has found fewer rows: the rows of the writes that follow share the next step, and its syncs. */
export const DRAIN_PAUSE_MS = 25;
/**
 * Least time between the starts of two full steps while requests come, of all files together: the queue runs fewer small jobs in
 * that time, and rows wait in their files as safely as there.
 */
export const DRAIN_BUSY_PAUSE_MS = 100;
/** Files that are drained at the same time. */
export const DRAINS_MAX = 4;
/** Backoff after a failure to drain an outbox, for instance while the disk is full; it doubles up to the second number. */
export const DRAIN_RETRY_MS = SECOND_MS;
export const DRAIN_RETRY_MAX_MS = MINUTE_MS;

/** Length of a chain of runs of triggers, each caused by a write of the one before. */
export const DEPTH_MAX = 16;

/** Runs and deliveries that one cause triggers, directly or by further triggers, at any depth. */
export const RUNS_PER_CAUSE_MAX = 4_096;
/** Causes whose runs are counted at the same time. */
export const CAUSES_MAX = 10_000;

/** Maximum length in characters of a group's name; a longer one is replaced by its hash. */
export const GROUP_LENGTH_MAX = 256;

/** Instance files that one request to the scanning process examines. */
export const SCAN_FILES = 1_000;
export const SCAN_TIMEOUT_MS = MINUTE_MS;
export const SCAN_RETRY_MS = 5 * SECOND_MS;
export const SCAN_RETRIES_MAX = 5;

export const RETRIES_DEFAULT = 5;
export const TIMEOUT_DEFAULT_SECONDS = 60;
export const CONCURRENCY_DEFAULT = 4;
