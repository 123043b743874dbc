import { SECOND_MS } from "../kernel/duration.ts";

/** Bytes read, hashed and written at once. */
export const CHUNK_BYTES = 1024 * 1024;
/** Pages of a database (4 MiB) copied between two syncs of the copy. */
export const STEP_PAGES = 1024;
/** Bytes of an archive written between two syncs of it. */
export const SYNC_BYTES = 4 * 1024 * 1024;
/** Files of a restore that wait for the disk together. */
export const SYNCS_AT_ONCE_MAX = 64;
/** How far a process steps back behind the server's (`nice`). */
export const BACKUP_NICENESS = 10;
/** How long a snapshot waits for a database that is locked for a moment. */
export const LOCK_TIMEOUT_MS = 10 * SECOND_MS;
/** Snapshots of system.db that may be taken until all files that one of them names are at hand. */
export const OBJECT_ROUNDS_MAX = 5;

/** The entry at the head of an archive, which says what it is. */
export const HEADER_MAX_BYTES = 16 * 1024;
/** One file of the manifest: a path, a size, a hash. */
export const MANIFEST_LINE_MAX_BYTES = 1024;
/** Names of files that a note mentions; of more it says how many. */
export const NAMES_SHOWN_MAX = 5;

/** What a scheduled backup may print: its result, or why it failed. */
export const CHILD_OUTPUT_MAX_BYTES = 16 * 1024;
/** Between asking a backup to stop and ending it. */
export const CHILD_STOP_TIMEOUT_MS = 10 * SECOND_MS;
/** Timers of more than 2^31 ms fire at once: a longer wait is made of several. */
export const WAIT_MAX_MS = 2 ** 31 - 1;
/** Backups kept by `backups.keep` at most, which also bounds what a rotation looks at. */
export const BACKUPS_LISTED_MAX = 100_000;

export const S3_PART_BYTES = 8 * 1024 * 1024;
export const S3_PARTS_AT_ONCE = 2;
export const S3_RETRIES = 3;
