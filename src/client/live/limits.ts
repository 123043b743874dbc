/** Records of a query without a limit, and the most that one may have: the longest page of a list. */
export const RECORDS_MAX = 1_000;
/** Records behind the limit that are kept, so that a window that loses some is whole at once: a tenth of the limit. */
export const SPARE_PARTS = 10;
export const SPARE_MIN = 3;

/** What a subscription takes, and below the length from which the server meters messages. */
export const CONDITIONS_MAX = 5;
export const CONDITIONS_LENGTH_MAX = 3_000;

/** A live query ends this long after its last listener. */
export const IDLE_END_MS = 5_000;
/** Listeners are called at once after a pause, else this long after the last time: once in a frame. */
export const NOTIFY_EVERY_MS = 16;

/** Changes that are kept while a list is under way. Beyond it the list is asked for again. */
export const QUEUED_CHANGES_MAX = 10_000;
/** Records of one message that are read one by one where it left them out; with more the list is asked for again. */
export const REREADS_MAX = 20;

/** The wait before a list or a subscription is tried again after a failure, twice as long each time. */
export const RETRY_MS = 1_000;
export const RETRY_MAX_MS = 30_000;
/** No answer to `subscribe` came: the server dropped it, as one over its rate. */
export const SUBSCRIBE_TIMEOUT_MS = 10_000;

/** States of a record that a write under way remembers, to find its own among them. */
export const SEEN_STATES_MAX = 16;
