import { HOUR_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Bytes read, hashed and written per step. */
export const CHUNK_BYTES = 1024 * 1024;
/** Pages of a database (4 MiB) copied between two syncs of the copy. */
export const STEP_PAGES = 1024;
/** Bytes of an archive written between two syncs of it. */
export const SYNC_BYTES = 4 * 1024 * 1024;
/** Concurrent syncs of files of a restore. */
export const SYNCS_AT_ONCE_MAX = 64;
/** The niceness of a backup process, so that the server has priority. */
export const BACKUP_NICENESS = 10;
/** Time that a snapshot waits for a locked database. */
export const LOCK_TIMEOUT_MS = 10 * SECOND_MS;
/** Attempts to take a snapshot of system.db of which all contents can be secured. */
export const OBJECT_ROUNDS_MAX = 5;

/** Maximum bytes of the first entry of an archive, which identifies it. */
export const HEADER_MAX_BYTES = 16 * 1024;
/** Maximum bytes of one line of the manifest: a path, a size, a hash. */
export const MANIFEST_LINE_MAX_BYTES = 1024;
/** File names in a message; further ones are counted. */
export const NAMES_SHOWN_MAX = 5;

/** Damages of one database that a verification names. */
export const DAMAGES_SHOWN_MAX = 5;

/** Maximum characters of a scheduled backup's output: its result, or its error. */
export const CHILD_OUTPUT_MAX_CHARS = 16 * 1024;
/** Delay between SIGTERM and SIGKILL for a running backup. */
export const CHILD_STOP_TIMEOUT_MS = 10 * SECOND_MS;
/** Maximum files examined at a destination. */
export const BACKUPS_LISTED_MAX = 100_000;

export const S3_PART_BYTES = 8 * 1024 * 1024;
export const S3_PARTS_AT_ONCE = 2;
export const S3_RETRIES = 3;
/** Keys per page of a list. */
export const S3_LIST_KEYS = 1000;

/** Time by which the names of backups may run ahead of the clock, as each is later than the one before. */
export const NAMES_AHEAD_MAX_MS = HOUR_MS;

/** Backups kept in the data directory when the config names no place; a further one replaces the oldest. */
export const LOCAL_KEEP = 3;
/** Maximum backups that a response lists, the newest. */
export const BACKUPS_SHOWN_MAX = 1000;
/** Maximum backups and verifications since the start that are remembered, the newest. */
export const RUNS_KEPT_MAX = 20;
/** Maximum unused links to backups. */
export const LINKS_MAX = 100;
/** Time from the response with a link to the request that uses it. */
export const LINK_TTL_MS = 60 * SECOND_MS;
/** Number of random bytes of a link. */
export const LINK_BYTES = 32;
