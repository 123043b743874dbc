/** How long a query may run. Then it is ended, with its process. Decisions 8. */
export const QUERY_TIMEOUT_MS = 30_000;
/** How long a query may wait for its turn behind others, before it has begun. */
export const QUEUE_TIMEOUT_MS = 30_000;
/**
 * Queries that may wait for one database's reading processes, and as many for its writing one. A large one counts as several:
 * one more for each so many bytes.
 */
export const QUEUE_MAX_QUERIES = 100;
export const QUEUE_PLACE_BYTES = 1024 * 1024;
/** Reading processes of one database: so many long reads run beside each other, and short ones beside all but the last. */
export const READERS_MAX_PER_DATABASE = 4;
/** A process that has had nothing to do for so long is ended. */
export const PROCESS_IDLE_MS = 60_000;
/** Characters of one statement. SQLite's own limit is a thousand times higher, which only makes slow parsers. */
export const SQL_MAX_CHARACTERS = 1_000_000;
/** Parameters of one statement; SQLite's usual bound. */
export const PARAMETERS_MAX = 32_766;
/** Bytes of an answer's rows as JSON. What is larger belongs in pages. */
export const RESULT_MAX_BYTES = 32 * 1024 * 1024;
/** How long a write waits for the lock of another process on the same file (a backup, say). */
export const BUSY_TIMEOUT_MS = 5_000;
/** What a query process has to end by itself when the server stops. */
export const STOP_TIMEOUT_MS = 3_000;
/** What the WAL is cut to after a checkpoint, once a big write has blown it up. */
export const JOURNAL_MAX_BYTES = 16 * 1024 * 1024;
/** Bytes of one value, also in the middle of a computation. */
export const VALUE_MAX_BYTES = 256 * 1024 * 1024;
/** Answers from this size on count as large; the server holds so many bytes of them for clients that read slowly. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;
export const LARGE_ANSWERS_MAX_BYTES = 64 * 1024 * 1024;
/** A client that reads nothing of a large answer for so long is cut off: its answer is in memory until then. */
export const STALLED_CLIENT_TIMEOUT_MS = 20_000;
/** A large answer leaves its process in parts of this size: the server takes in one in a fraction of a millisecond. */
export const ANSWER_PART_BYTES = 256 * 1024;
/** Bytes of a large body that are looked at for the first word of its statement. */
export const BODY_START_BYTES = 256;
