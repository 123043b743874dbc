/** Time limit of a query, which is then ended by killing its process. */
export const QUERY_TIMEOUT_MS = 30_000;
/** Time that a query waits for a process before it is refused. */
export const QUEUE_TIMEOUT_MS = 30_000;
/** Queue places for the reads of one database, and as many for its writes. */
export const QUEUE_MAX_QUERIES = 100;
/** A query takes one place, and one more for each of these bytes. */
export const QUEUE_PLACE_BYTES = 1024 * 1024;
/** Reading processes of one database, and so its concurrent reads. */
export const READERS_MAX_PER_DATABASE = 4;
/** Idle time after which a process ends. */
export const PROCESS_IDLE_MS = 60_000;
/** Characters of one statement. SQLite's own limit is a thousand times higher. */
export const SQL_MAX_CHARACTERS = 1_000_000;
/** Parameters of one statement; SQLite's usual bound. */
export const PARAMETERS_MAX = 32_766;
/** The highest number of a parameter (`?123`) that SQLite accepts in any build. */
export const PARAMETER_NUMBER_MAX = 250_000;
/** Bytes of an answer's rows as JSON. */
export const RESULT_MAX_BYTES = 32 * 1024 * 1024;
/** Time that a write waits for the lock of another process on the same file, such as a backup. */
export const BUSY_TIMEOUT_MS = 5_000;
/** Time for which running queries may continue when the server stops. */
export const STOP_TIMEOUT_MS = 3_000;
/** Pages in the write-ahead log after which it is moved into the database, and may restart. */
export const LOG_PAGES = 1_000;
/** The size to which the write-ahead log is truncated after a checkpoint. */
export const LOG_KEPT_BYTES = 16 * 1024 * 1024;
/** Bytes by which a write-ahead log may exceed its database, while a statement writes or long reads prevent a checkpoint. */
export const LOG_OVER_DATABASE_MAX_BYTES = 1024 * 1024 * 1024;
/** Time between two checks of the write-ahead log's size while a statement writes. */
export const LOG_CHECK_MS = 250;
/** Bytes of one value, also in the middle of a computation. */
export const VALUE_MAX_BYTES = 256 * 1024 * 1024;
/** Bytes of a large body that are searched for the first word of its statement. */
export const BODY_START_BYTES = 256;
