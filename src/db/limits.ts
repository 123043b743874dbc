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

export const OPEN_INSTANCES_MAX = 256;

/** A file that a crash has left with a WAL is looked through when it is opened, up to this size: some 0.1 s. */
export const CHECK_AFTER_CRASH_MAX_BYTES = 64 * 1024 * 1024;
