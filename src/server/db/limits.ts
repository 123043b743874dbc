/** All limits of this layer, with their units. */

export const PAGE_BYTES = 4096;
export const CACHE_KIB = 8192;
export const INSTANCE_CACHE_KIB = 256;
export const INSTANCE_STATEMENTS_MAX = 64;
export const STATEMENTS_MAX = 512;

/** Time for which SQLite may wait for a lock. Short, because it waits on the main thread. */
export const BUSY_TIMEOUT_MS = 250;

/** Maximum writes of one transaction, and the time after which it takes no more, so that the event loop can run other work. */
export const WRITES_PER_TRANSACTION_MAX = 500;
export const TRANSACTION_TIME_MAX_MS = 5;
export const WAITING_WRITES_MAX = 100_000;

/**
 * Delay before a sync is retried that failed for lack of memory or descriptors, and the number of retries until it counts as
 * failed.
 */
export const SYNC_RETRY_MS = 100;
export const SYNC_RETRIES_MAX = 100;

/** A page in a WAL, with its header. */
export const WAL_FRAME_BYTES = PAGE_BYTES + 24;
/** WAL bytes (1000 pages) after which a checkpoint runs concurrently with the writer. */
export const CHECKPOINT_BYTES = 1000 * WAL_FRAME_BYTES;
/** WAL bytes past which the writer waits for the end of a checkpoint, so that the WAL can restart. */
export const WAL_BYTES_MAX = 16 * 1024 * 1024;
/**
 * WAL bytes that may be left for the checkpoint that the writer waits for; up to MORE_CHECKPOINTS_MAX further checkpoints reduce
 * the WAL to this size first.
 */
export const WAL_BYTES_LEFT = 512 * 1024;
export const MORE_CHECKPOINTS_MAX = 3;
/** WAL bytes past which the writer waits at once, because the disk is too slow. The file of a busy WAL keeps this length. */
export const WAL_BYTES_STOP = 24 * 1024 * 1024;

/** Maximum rows of a table whose size in bytes is tracked. A table with more rows counts as large. */
export const SIZED_ROWS_MAX = 5_000;

export const READ_TIMEOUT_MS = 30_000;
/** Queue places for waiting long reads. A read takes one, and one more for each READ_PLACE_BYTES of its bound values. */
export const WAITING_READS_MAX = 1_000;
export const READ_PLACE_BYTES = 64 * 1024;
/** Number of bound values from which they are sent to the process as one text. */
export const SENT_AS_JSON_MIN = 100;
/** Average length of the values up to which one text is quicker. */
export const SENT_AS_JSON_CHARS_MAX = 1_000;
/** Time limit of a checkpoint of about 24 MiB at most. After it, the process is killed, and the next one tries again. */
export const CHECKPOINT_TIMEOUT_MS = 60_000;
/** Time for which a restart of the WAL waits for readers. The writer waits meanwhile. */
export const RESTART_WAIT_MS = 50;
/** Time limit for an idle process to close a file, after which it is killed. */
export const FORGET_TIMEOUT_MS = 5_000;
/** Long statements that run at once; further ones wait. */
export const QUERY_PROCESSES_MAX = 8;
/** An idle process ends after this time, to free its memory. */
export const READ_PROCESS_IDLE_MS = 60_000;
/** Connections that one query process keeps. */
export const READ_CONNECTIONS_MAX = 8;
/** Bytes that one long read may return. */
export const READ_RESULT_BYTES_MAX = 16 * 1024 * 1024;
/** Bytes of one value, including intermediate values of a computation. */
export const READ_VALUE_BYTES_MAX = 64 * 1024 * 1024;
/** Pages being read, or held in memory until their answer is sent, at once; further ones wait. */
export const PAGES_MAX = 8;
/** Size up to which a page does not count after it has been read. */
export const LARGE_PAGE_BYTES = 256 * 1024;
/** The server receives a result in parts of this size. Each blocks the event loop for about a millisecond. */
export const READ_PART_BYTES = 256 * 1024;
/** Time for which a query process waits for a lock. The server's process is not blocked. */
export const QUERY_LOCK_TIMEOUT_MS = 5_000;

/** Characters of indexed texts that one write indexes itself, in a few milliseconds. Another process indexes the rest later. */
export const INDEXED_NOW_LENGTH_MAX = 16 * 1024;
/** Minimum records of a table whose index is rebuilt in another process, if that is enabled. */
export const REBUILD_NOW_ROWS_MAX = 500;
/** Time for which one transaction of the indexing process takes further texts. The file's writes wait meanwhile. */
export const INDEX_SLICE_MS = 40;
/** Pause between two of these transactions, so that waiting writes can run. */
export const INDEX_PAUSE_MS = 5;
/** Time limit of a slice, after which its process is killed. A slice indexes at least one text, of up to 10 MiB. */
export const INDEX_TIMEOUT_MS = 60_000;
/** Delay before indexing is tried again after a failed slice. */
export const INDEX_RETRY_MS = 5_000;

/** Instance files of one namespace that stay open, if there are enough descriptors. */
export const OPEN_INSTANCES_MAX = 256;
/** Files over that bound that may wait to be closed. Beyond it, a file is closed synchronously. */
export const INSTANCES_OVER_MAX = 64;
/** Files that are being closed asynchronously. */
export const INSTANCES_CLOSING_MAX = 32;
/** The database, its WAL twice (SQLite's descriptor and the one for syncs), its shared memory, and the new file. */
export const DESCRIPTORS_PER_FILE = 5;
/** Descriptors reserved for files; at most a sixteenth of the limit. */
export const RESERVE_DESCRIPTORS_MAX = 64;
/** Limit of open files below which idle connections of one client can use up all others. */
export const DESCRIPTORS_COMFORTABLE = 4_096;
/** Delay before refilling the reserve is tried again when no descriptor is available. */
export const RESERVE_REFILL_MS = 1_000;

/** Deleted instances remembered by id, so that older handles are refused. */
export const DELETIONS_KNOWN_MAX = 10_000;
/** Instances of a list whose files are examined concurrently. */
export const FACTS_AT_ONCE = 64;
/** Size above which the tables of an instance are migrated by another process. */
export const MIGRATED_NOW_BYTES_MAX = 2 * 1024 * 1024;
/** Size above which the datetimes of an instance of 0.2 are rewritten by another process: every value is read. */
export const REWRITTEN_NOW_BYTES_MAX = 512 * 1024;
/** Time limit of such a migration, and the number of instances that may wait for one. */
export const MIGRATION_TIMEOUT_MS = 3_600_000;
export const MIGRATIONS_WAITING_MAX = 10_000;
/** Time for which a request waits for the migration of its instance. */
export const MIGRATION_WAIT_MS = 20_000;
/** Delay before the datetimes of a file are rewritten again, when that has failed. */
export const UPGRADE_RETRY_MS = 30_000;
/** Records of a field that are rewritten from one query, and records whose ids the log names. */
export const REWRITTEN_AT_ONCE = 1_000;
export const NAMED_RECORDS_MAX = 20;
/** Cached instances that do not fit the declaration: maximum number, and time. */
export const UNFIT_INSTANCES_MAX = 1_000;
export const UNFIT_KEPT_MS = 10_000;

/** Maximum size of a file that is checked when it is opened with a WAL left by a crash. Takes about 0.1 s. */
export const CHECK_AFTER_CRASH_MAX_BYTES = 64 * 1024 * 1024;

/** Bounds of the marks in a text found by a search: number of hits, and bytes at its beginning that are searched for them. */
export const HIGHLIGHT_HITS_MAX = 100;
export const HIGHLIGHT_BYTES_MAX = 64 * 1024;
/** Characters of a piece whose marks are made together. FTS5's time grows with the square of the number of marks. */
export const HIGHLIGHT_PIECE_LENGTH = 4_096;
/** A phrase that begins in one piece may end this many characters after it: the maximum length of a query. */
export const HIGHLIGHT_PHRASE_LENGTH = 1_000;

/** Characters at the beginning of a record's texts in which the words of a search are counted to rank it. */
export const RANKED_TEXT_LENGTH = 64 * 1024;

/** Minimum size of an answer from a process that counts as large. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;
/** Bytes of large texts that an area holds at once. */
export const LARGE_ANSWERS_MAX_BYTES = 64 * 1024 * 1024;
/** A process sends a large text in parts of this size. The server receives one in a fraction of a millisecond. */
export const ANSWER_PART_BYTES = 256 * 1024;

/** Requests that may wait for an open instance file. */
export const WAITING_FOR_ROOM_MAX = 10_000;
/** Time for which a request waits for the file of an instance that exists. */
export const ROOM_WAIT_MS = 20_000;
/** Delay before files over the bound are closed, if they were busy before. */
export const SWEEP_DELAY_MS = 100;

/** Time for which a rehearsal of the schema waits for a file that the server has locked. */
export const REHEARSAL_LOCK_TIMEOUT_MS = 5_000;

/** Characters of audit entries in one row of a file; a longer entry has a row of its own. */
export const AUDIT_ROW_CHARACTERS = 256 * 1024;
/** Bytes of the value before or after a change that an audit entry shows. */
export const AUDIT_VALUE_BYTES = 16 * 1024;
/** Changes of one write that have an audit entry each; more share one entry with their counts. */
export const AUDITED_SINGLY_MAX = 100;
/** Time limit for replacing the content of a file, and the pages that are copied at a time, in one transaction. */
export const REPLACE_TIMEOUT_MS = 3_600_000;
export const REPLACE_STEP_PAGES = 4_096;
/** Time for which a write waits for a file whose content is being replaced. */
export const REPLACE_WAIT_MS = 20_000;
/** Bytes of a commit of another process up to which its pages are captured, and up to which they are read in one turn. */
export const COMMIT_CAPTURED_MAX_BYTES = 64 * 1024 * 1024;
export const FRAMES_READ_AT_ONCE_BYTES = 1024 * 1024;

/** Deletions that the log of a file keeps for other files. A file that is further behind compares all ids. */
export const TOMBSTONES_MAX = 100_000;

/** Files of instances that a reader in another process has open at most, and the time within which it gives one back: it is ended then. */
export const LENT_MAX = 64;
export const RECALL_MAX_MS = 1_000;
/** Time after which a reader asks again for a file that was not lent, and the files that it remembers to have asked for. */
export const ASKED_AGAIN_MS = 50;
export const ASKED_KEPT_MAX = 1_000;
