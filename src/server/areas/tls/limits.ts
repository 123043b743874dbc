import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** The time before its end at which a certificate is renewed, or when a third of its life is left if that is shorter. */
export const RENEWAL_BEFORE_END_MS = 30 * DAY_MS;
export const RENEWAL_LIFE_SHARE = 1 / 3;
/** The minimum wait between two attempts of one server, whatever is known of the first. */
export const RETRY_AFTER_FIRST_MS = 2 * MINUTE_MS;
/** The backoff after failures in a row; after more, the last one. Let's Encrypt allows five failures an hour. */
export const RETRY_AFTER_MS = [
  RETRY_AFTER_FIRST_MS,
  ...[10, 30, 60, 2 * 60, 4 * 60, 8 * 60].map((minutes) => minutes * MINUTE_MS),
];
/** The maximum wait: a later retry was set before the clock was set back, or requested by the authority. */
export const RETRY_AFTER_MAX_MS = DAY_MS;
/** The interval of checks whether a renewal is due; machines sleep, and clocks are set. */
export const RENEWAL_LOOK_MS = HOUR_MS;
/** The interval of checks whether certificate files have changed. */
export const FILES_LOOK_MS = 2 * SECOND_MS;
/** The timeout of a renewal. */
export const ISSUE_TIMEOUT_MS = 5 * MINUTE_MS;
/** The timeout of one request to the authority. */
export const REQUEST_TIMEOUT_MS = 30 * SECOND_MS;
/** Bytes of an answer of the authority: a chain of certificates has several thousand. */
export const ANSWER_MAX_BYTES = 512 * 1024;
export const SELF_SIGNED_TIMEOUT_MS = 30 * SECOND_MS;
/** The life of a self-signed certificate, and the minimum of it that must be left. */
export const SELF_SIGNED_LIFE_MS = 365 * DAY_MS;
export const SELF_SIGNED_LEFT_MIN_MS = 30 * DAY_MS;
/** The remaining life from which a certificate is a problem for `health`, as an expired one is. */
export const ENDING_MS = 7 * DAY_MS;
/** Bytes of a PEM file that are read. */
export const PEM_MAX_BYTES = 1024 * 1024;
/** Characters of a renewal's output. */
export const JOB_OUTPUT_MAX_CHARS = 64 * 1024;
export const PROBLEM_MAX_CHARS = 2_000;
/** The maximum body of a request to the HTTP port, which needs none. */
export const CHALLENGE_BODY_MAX_BYTES = 1024;
export const CHALLENGE_IDLE_SECONDS = 10;
