/** Writes that wait for a connection. A further one is refused. */
export const WAITING_WRITES_MAX = 1_000;
/** The characters of the JSON of one write that can wait. */
export const WRITE_LENGTH_MAX = 1_000_000;
/** The server keeps the answer of a write for 24 h: until then it can be sent again and is done once. */
export const UNKNOWN_AFTER_MS = 23 * 60 * 60 * 1_000;

/** Queries whose records are kept for the next start; those that were seen longest ago go first. */
export const SEEN_QUERIES_MAX = 100;
/** The characters of the JSON of a query's records; larger ones are not kept. */
export const SEEN_LENGTH_MAX = 4_000_000;
/** Records are stored this long after a change, together with those that follow it. */
export const STORE_AFTER_MS = 1_000;
