/** Events are sent together, this long after the first of them. */
export const FLUSH_AFTER_MS = 5_000;

/** What the server takes in one request. */
export const EVENTS_AT_ONCE_MAX = 100;

/** Browsers send at most this much after a page has gone. */
export const KEEPALIVE_MAX_BYTES = 64 * 1024;
/** Of one request, so that most are within it. */
export const BODY_MAX_CHARACTERS = 50_000;

/** While the server cannot be reached; beyond it the oldest are dropped. */
export const WAITING_MAX = 1_000;

/** An event that waited for longer has its time with it; others get the server's, as the clock of a device may be wrong. */
export const RECENT_MS = 10_000;
