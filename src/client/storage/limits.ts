/** A larger file is sent in parts. */
export const SINGLE_MAX_BYTES = 8 * 1024 * 1024;
/** One part. Larger where a file would have more parts than the server takes. */
export const PART_BYTES = 4 * 1024 * 1024;
export const PARTS_MAX = 10_000;
export const PARTS_AT_ONCE = 4;

/** Tries of one request of an upload; the wait doubles from the first to the longest. A success of any part begins anew. */
export const FAILURES_MAX = 10;
export const FIRST_WAIT_MS = 500;
export const LONGEST_WAIT_MS = 30_000;

/** A request of which nothing moves for this long is taken for lost, and while the server works after the last byte. */
export const STALL_MS = 30_000;
/** The same where the environment does not tell how far a request is: it has this long, and this much for each byte. */
export const SLOWEST_BYTES_PER_MS = 16;
/** The server joins the parts of a large file. */
export const COMPLETE_TIMEOUT_MS = 600_000;

/** Uploads that can go on after a reload, the latest ones, as long as the server keeps their parts. */
export const UNFINISHED_MAX = 50;
export const UNFINISHED_TTL_MS = 24 * 60 * 60 * 1000;
