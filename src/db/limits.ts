/** Every number of this layer, with its unit. */

export const PAGE_BYTES = 4096;
export const CACHE_KIB = 8192;
export const INSTANCE_CACHE_KIB = 256;
export const INSTANCE_STATEMENTS_MAX = 64;
export const STATEMENTS_MAX = 512;

/** How long SQLite itself may wait for a lock: on the main thread, so short. */
export const BUSY_TIMEOUT_MS = 250;

/** One transaction holds at most this many writes, and stops taking more after this time: the loop goes on between. */
export const WRITES_PER_TRANSACTION_MAX = 500;
export const TRANSACTION_TIME_MAX_MS = 5;
export const WAITING_WRITES_MAX = 100_000;

/** A sync that found no memory or descriptor is tried again after this time, so many times; then it counts as failed. */
export const SYNC_RETRY_MS = 100;
export const SYNC_RETRIES_MAX = 100;

/** WAL pages (4 MiB) after which a checkpoint runs beside the writer. */
export const CHECKPOINT_PAGES = 1000;
/** WAL bytes past which the writer waits for the end of a checkpoint, so that the WAL can start over. */
export const WAL_BYTES_MAX = 16 * 1024 * 1024;
/** WAL bytes past which it waits at once: the disk does not keep up. */
export const WAL_BYTES_STOP = 24 * 1024 * 1024;

/** Rows up to which the bytes of a table are known: a table with more is large for its rows alone. */
export const SIZED_ROWS_MAX = 5_000;

export const READ_TIMEOUT_MS = 30_000;
/** Places for long reads that wait for a process. A read takes one, and one more for each READ_PLACE_BYTES that it binds. */
export const WAITING_READS_MAX = 1_000;
export const READ_PLACE_BYTES = 64 * 1024;
/** A checkpoint moves at most some 24 MiB; after this time its process is killed, and the next one tries again. */
export const CHECKPOINT_TIMEOUT_MS = 60_000;
/** How long starting the WAL over waits for its readers: the writer waits meanwhile. */
export const RESTART_WAIT_MS = 50;
/** How long a process that has nothing to do may take to close a file, before it is killed. */
export const FORGET_TIMEOUT_MS = 5_000;
/** Long statements that run at once; the next ones wait. */
export const QUERY_PROCESSES_MAX = 8;
/** A process without work ends after this time: it costs memory only while it is needed. */
export const READ_PROCESS_IDLE_MS = 60_000;
/** Connections that one query process keeps. */
export const READ_CONNECTIONS_MAX = 8;
/** Bytes that one long read may return. */
export const READ_RESULT_BYTES_MAX = 16 * 1024 * 1024;
/** Bytes of one value, what SQLite computes on the way included. */
export const READ_VALUE_BYTES_MAX = 64 * 1024 * 1024;
/** Pages that are read, or in memory until their answer has been sent, at once; the next ones wait. */
export const PAGES_MAX = 8;
/** A page up to this size does not count once it has been read. */
export const LARGE_PAGE_BYTES = 256 * 1024;
/** The server takes in a result in parts of this size: each holds the event loop for about a millisecond. */
export const READ_PART_BYTES = 256 * 1024;
/** How long a query process waits for a lock: it holds up nobody. */
export const QUERY_LOCK_TIMEOUT_MS = 5_000;

/** Characters of indexed texts that one write indexes itself, in some milliseconds; the rest is noted and indexed beside the loop. */
export const INDEXED_NOW_LENGTH_MAX = 16 * 1024;
/** Records from which on a table's index is made anew beside the loop, where that is wanted. */
export const REBUILD_NOW_ROWS_MAX = 500;
/** How long one transaction of the indexing process goes on taking texts: the file's writes wait for it. */
export const INDEX_SLICE_MS = 40;
/** Between two of them, so that the writes that waited run. */
export const INDEX_PAUSE_MS = 5;
/** A slice takes one text at least, of up to 10 MiB; after this time its process is killed. */
export const INDEX_TIMEOUT_MS = 60_000;
/** After a slice that failed, indexing is tried again. */
export const INDEX_RETRY_MS = 5_000;

/** Instance files of one namespace that stay open, where there are descriptors enough. */
export const OPEN_INSTANCES_MAX = 256;
/** Files over that bound that may wait to be closed; beyond it a file is closed on the spot. */
export const INSTANCES_OVER_MAX = 64;
/** Files that are being closed beside the loop. */
export const INSTANCES_CLOSING_MAX = 32;
/** The database, its WAL twice (SQLite's and the one that is synced), its shared memory, and the new file. */
export const DESCRIPTORS_PER_FILE = 5;
/** Descriptors kept back for files; never more than a sixteenth of all. */
export const RESERVE_DESCRIPTORS_MAX = 64;
/** When some of them have been used and none is to be had: after this time they are asked for again. */
export const RESERVE_REFILL_MS = 1_000;

/** Instances that were found not to fit what is declared: how many are remembered, and for how long. */
export const UNFIT_INSTANCES_MAX = 1_000;
export const UNFIT_KEPT_MS = 10_000;

/** A file that a crash has left with a WAL is looked through when it is opened, up to this size: some 0.1 s. */
export const CHECK_AFTER_CRASH_MAX_BYTES = 64 * 1024 * 1024;

/** What is marked in a text that a search has found: its first hits, in its first bytes. */
export const HIGHLIGHT_HITS_MAX = 100;
export const HIGHLIGHT_BYTES_MAX = 64 * 1024;
/** Characters that are marked at a time: FTS5 takes the square of the marks in them. */
export const HIGHLIGHT_PIECE_LENGTH = 4_096;
/** A phrase that begins in one piece may end so many characters behind it: as long as a query can be. */
export const HIGHLIGHT_PHRASE_LENGTH = 1_000;

/** Texts that a process answers with are large from this size on. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;
/** Bytes of large texts that an area holds at once. */
export const LARGE_ANSWERS_MAX_BYTES = 64 * 1024 * 1024;
/** A large text leaves its process in parts of this size: the server takes in one in a fraction of a millisecond. */
export const ANSWER_PART_BYTES = 256 * 1024;

/** Writes and long reads that may wait for a place. */
export const WAITING_FOR_ROOM_MAX = 10_000;
/** When files in use kept the bound from being met: after this time it is looked at again. */
export const SWEEP_DELAY_MS = 100;
