import { DAY_MS, HOUR_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Time limit of one try, until the receiver has sent the head of its answer. */
export const DELIVERY_TIMEOUT_MS = 15 * SECOND_MS;
/** Bytes of an answer's body that are kept, and the time limit for reading them once its head has arrived. */
export const ANSWER_KEPT_BYTES = 4 * 1024;
export const ANSWER_READ_MS = SECOND_MS;
/** Maximum length in characters of an answer's type that is kept. */
export const CONTENT_TYPE_MAX_LENGTH = 100;
/** Least number of characters of a secret that are hidden. A shorter part reveals nothing, and is shown. */
export const HIDDEN_MIN_LENGTH = 4;
/** The queue's limit of a try, in seconds: for a try that does not end by itself. */
export const RUN_TIMEOUT_SECONDS = 30;
/** Deliveries of one webhook at once. */
export const DELIVERIES_MAX = 10;

/** Backoff: the delay after the first failed try; it doubles with each further one up to the second number. */
export const RETRY_FIRST_MS = 5 * SECOND_MS;
export const RETRY_MAX_MS = 4 * HOUR_MS;
/** The part of a delay that is random. */
export const RETRY_JITTER = 0.2;
/** Time for which a delivery is retried, the last time at its end. */
export const RETRIED_FOR_MS = 3 * DAY_MS;
