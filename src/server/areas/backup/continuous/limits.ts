import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";

export const EVERY_DEFAULT_MS = 1000;
export const KEEP_DAYS_DEFAULT = 7;
export const PENDING_BYTES_DEFAULT = 1024 ** 3;
/** Free bytes of the disk below which nothing more waits on it. */
export const DISK_FREE_MIN_BYTES = 512 * 1024 ** 2;
/** Delay before the next attempt, doubled by each failure up to the longest. */
export const RETRY_MS = SECOND_MS;
export const RETRY_MAX_MS = MINUTE_MS;
/** Time limit of a pass of the process that stores; a first copy of large files takes long. */
export const PASS_TIMEOUT_MS = 12 * HOUR_MS;
/** Time between two manifests. */
export const MANIFEST_EVERY_MS = MINUTE_MS;
/** Segments listed by the manifest itself, beyond which the oldest are listed by an index. */
export const SEGMENTS_LISTED_MAX = 1024;
/** Age from which a changed file gets a full copy again, and the size up to which it lies in a segment. */
export const COPY_AGE_MAX_MS = DAY_MS;
export const COPY_IN_SEGMENT_BYTES_MAX = 1024 ** 2;
/** Entries of a file may have so many bytes more than the file before it gets a full copy. */
export const ENTRIES_OVER_COPY_BYTES = 1024 ** 2;
/** Bytes of uncompressed pages in a block of a full copy, and in memory. */
export const COPY_BLOCK_BYTES = 4 * 1024 ** 2;
/** Bytes of page versions that are kept as bases of differences. */
export const BASES_MAX_BYTES = 6 * 1024 ** 2;
/** Bytes of entries that are compressed together: they are in the processor's cache, and not in memory once they are compressed. */
export const FRAME_BYTES = 256 * 1024;
/** Bytes of entries after which a segment ends although more waits. */
export const SEGMENT_MAX_BYTES = 32 * 1024 ** 2;
/** Attempts to take a snapshot between two commits, and the time that it waits for a lock. */
export const SNAPSHOT_TRIES_MAX = 200;
export const SNAPSHOT_BUSY_MS = 5 * SECOND_MS;
/** The lowest level compresses differences nearly as well as the others. */
export const ZSTD_LEVEL = 1;
/** Interval in which contents and files are compared with what is known. */
export const RECONCILE_EVERY_MS = HOUR_MS;
/** Ages are compared after this time, so that objects are deleted a little later rather than early. */
export const RETENTION_EVERY_MS = HOUR_MS;
export const RETENTION_SLACK_MS = HOUR_MS;
/** Bytes up to which the hashes of an open file are kept with every pass, and how often larger ones are. */
export const TABLE_SAVED_AT_ONCE_BYTES = 256 * 1024;
export const TABLE_SAVED_EVERY_MS = MINUTE_MS;
/** Bytes of records after which the storing process collects memory. */
export const COLLECT_BYTES = 4 * 1024 ** 2;
/** Time of a pass for comparing files, after which what was found is stored first. */
export const SCAN_PASS_MS = 5 * SECOND_MS;
/** Pause between two passes while something waits for the next one. */
export const MORE_PAUSE_MS = 50;
/** Idle time after which the process ends: it forgets the bases of differences. */
export const PROCESS_IDLE_MS = HOUR_MS;
/** Intervals by which the store may lag behind while passes fail, until health says so. */
export const LAG_INTERVALS_MAX = 5;
/** Time that a stop waits for contents that are not stored yet; a part of the 8 s that a stop may take. */
export const LAST_CONTENTS_MS = 3_000;
/** Time from the first full copies to the first verification, from one to the next, and to the next after a failure. */
export const VERIFY_FIRST_MS = 10 * SECOND_MS;
export const VERIFY_EVERY_MS = DAY_MS;
export const VERIFY_RETRY_MS = HOUR_MS;
export const VERIFY_TIMEOUT_MS = 12 * HOUR_MS;
/** Time that a verification waits for the store to have what was read. */
export const VERIFY_WAIT_MS = 5 * MINUTE_MS;
export const VERIFY_POLL_MS = SECOND_MS;
/** Bytes of databases that are restored at a time, by a verification and by a restore; one that is larger is alone. */
export const VERIFY_BATCH_BYTES = 1024 ** 3;
export const RESTORE_BATCH_BYTES = 1024 ** 3;
/** Attempts to read a database in a state that the store gets. */
export const VERIFY_ROUNDS = 4;
/** Idle time after which the process of the verification ends. */
export const VERIFY_IDLE_MS = SECOND_MS;
/** Times for which one object stands for all segments: the last version of each page in a minute, an hour and a day. */
export const MERGED_SPANS_MS = [MINUTE_MS, HOUR_MS, DAY_MS] as const;
/** Bytes of pages in memory after which such an object ends early. */
export const MERGED_MAX_BYTES = 6 * 1024 ** 2;
/** Time of a pass for merging what the store has. */
export const MERGE_PASS_MS = 50;
/** Delay after a merge that has failed. */
export const MERGE_RETRY_MS = MINUTE_MS;
/** Time limit of the restore of one instance, the restores that wait, and the idle time after which their process ends. */
export const TENANT_TIMEOUT_MS = HOUR_MS;
export const TENANTS_WAITING_MAX = 8;
/** Bounds of what a line of time shows, and the time for which it waits for restores of instances. */
export const TIMELINE_SPANS_MAX = 100;
export const TIMELINE_GAPS_MAX = 100;
export const TIMELINE_COPIES_MAX = 200;
export const TIMELINE_TIMEOUT_MS = 20 * SECOND_MS;
export const TENANT_IDLE_MS = 10 * SECOND_MS;
