/** Time that messages may take in one turn of the event loop, before requests and timers have theirs. */
export const TURN_MS = 4;
/** Messages of one connection that wait for their turn or for an earlier message. */
export const WAITING_MESSAGES_MAX = 1_000;
/** Characters of the messages that wait, of one client network and of all. */
export const WAITING_PER_CLIENT_MAX_CHARS = 32 * 1024 * 1024;
export const WAITING_MAX_CHARS = 128 * 1024 * 1024;

/** A message is long from this many characters on: what it costs is mostly its length, which is metered. */
export const LONG_MESSAGE_MIN_CHARS = 4 * 1024;
/** Characters of long messages that one client network may send in a second, and at once. */
export const CLIENT_CHARS_PER_SECOND = 8 * 1024 * 1024;
export const CLIENT_CHARS_AT_ONCE = 32 * 1024 * 1024;
