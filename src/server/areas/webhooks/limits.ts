import { DAY_MS, HOUR_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Time of one try, until the receiver has sent the head of its answer. */
export const DELIVERY_TIMEOUT_MS = 15 * SECOND_MS;
/** Bytes of an answer's body that are kept, and the time for which they are waited for once its head is there. */
export const ANSWER_KEPT_BYTES = 4 * 1024;
export const ANSWER_READ_MS = SECOND_MS;
/** Characters of an answer's type that are kept. */
export const CONTENT_TYPE_MAX_LENGTH = 100;
/** Characters. A shorter part of a secret tells nothing of it, and is shown. */
export const HIDDEN_MIN_LENGTH = 4;
/** The queue's own limit of a try, in seconds: for a try that does not end by itself. */
export const RUN_TIMEOUT_SECONDS = 30;
/** Deliveries of one webhook at once. */
export const DELIVERIES_MAX = 10;

/** The delay after the first failed try; it doubles with each further one up to the second number. */
export const RETRY_FIRST_MS = 5 * SECOND_MS;
export const RETRY_MAX_MS = 4 * HOUR_MS;
/** The part of a delay that is random. */
export const RETRY_JITTER = 0.2;
/** A delivery is tried again for this long, the last time at its end. */
export const RETRIED_FOR_MS = 3 * DAY_MS;
