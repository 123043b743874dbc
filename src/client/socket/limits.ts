/** The connection is closed this long after nothing uses it any more. */
export const IDLE_CLOSE_MS = 5_000;
/**
 * The close code of a connection that does not answer: a room keeps the place of its player, as it does not where a client closes
 * without a code.
 */
export const CLOSE_LOST = 4900;

/** From the start of a connection to the answer to `auth`. */
export const CONNECT_TIMEOUT_MS = 8_000;

/**
 * A connection without a message for one beat is asked by a ping, and counts as lost after one more and a half without an
 * answer: within 10 s together.
 */
export const BEAT_MS = 3_000;
export const PONG_TIMEOUT_MS = 3_500;
/** Presence ends on the server without pings, however much else is received. */
export const PING_EVERY_BEATS = 8;
/** After the browser says that it has lost the network, or that the page is seen again. */
export const PROBE_TIMEOUT_MS = 2_000;

/** The wait before the first new connection; each next one is twice as long, less up to a half by chance. */
export const RECONNECT_MS = 400;
export const RECONNECT_MAX_MS = 15_000;

/** Messages at once, and then in a second: below what the server accepts from one connection. */
export const MESSAGES_AT_ONCE = 60;
export const MESSAGES_PER_SECOND = 60;
/** Messages that wait for their turn. Beyond it the oldest are dropped, as the server drops those over its rate. */
export const WAITING_MESSAGES_MAX = 1_000;
