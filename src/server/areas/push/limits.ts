import { UNDER_WAY_MAX_MS } from "../../../kernel/limits.ts";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Characters of a device id. */
export const DEVICE_ID_LENGTH_MAX = 256;
/** Characters of a token: an FCM token has about 160, a Web Push subscription as JSON about 500. */
export const TOKEN_LENGTH_MAX = 4096;
/** Devices of one user. A further device replaces the one that registered longest ago. */
export const DEVICES_PER_USER_MAX = 50;
/** Topics of one device. */
export const TOPICS_PER_DEVICE_MAX = 200;
/** Characters of a topic. */
export const TOPIC_LENGTH_MAX = 128;
/** Bytes of a device's metadata as JSON. */
export const METADATA_MAX_BYTES = 16 * 1024;
/** Users of one `send-many`. */
export const USER_IDS_MAX = 1_000;
/** Characters of a user id: record ids have at most as many. */
export const USER_ID_LENGTH_MAX = 256;
/** Bytes of a request body: a token or a message, escapes included; `send-many` has up to USER_IDS_MAX user ids as well. */
export const BODY_MAX_BYTES = 64 * 1024;
export const SEND_MANY_BODY_MAX_BYTES = 1024 * 1024;

/** Bytes of the raw overrides as JSON. */
export const OVERRIDES_MAX_BYTES = 4096;

/** Concurrent calls to providers, in the whole server. */
export const CALLS_AT_ONCE_MAX = 50;
/** Concurrent calls for messages to topics: fewer, so that a message to one user never waits for a whole broadcast. */
export const TOPIC_CALLS_AT_ONCE_MAX = 40;
/** Bytes of a response from FCM or its token endpoint. */
export const ANSWER_MAX_BYTES = 64 * 1024;
/** A call without an answer after this time has failed. */
export const CALL_TIMEOUT_MS = 10 * SECOND_MS;
/** Time limit of a DNS lookup of a push service, and the number of tries. */
export const LOOKUP_TIMEOUT_MS = 2 * SECOND_MS;
export const LOOKUP_TRIES = 2;
/** Pauses before the second and the third attempt, unless the provider sends `Retry-After`. */
export const RETRY_DELAYS_MS: readonly number[] = [500, 1_000];
/** A longer `Retry-After` is reduced to this. */
export const RETRY_AFTER_MAX_MS = 10 * SECOND_MS;
/** After this many consecutive timeouts a push service is not called for SILENCE_REST_MS. */
export const SILENCES_BEFORE_REST = 5;
export const SILENCE_REST_MS = 30 * SECOND_MS;
/** Unresponsive push services kept in memory. */
export const SILENT_SITES_MAX = 1_000;
/** Time that messages wait for an unavailable push service before they fail. */
export const OUTAGE_MAX_MS = 5 * MINUTE_MS;
/** The pause after the first failure; it doubles after each further one. */
export const OUTAGE_PAUSE_FIRST_MS = SECOND_MS;
export const OUTAGE_PAUSE_MAX_MS = 30 * SECOND_MS;
/** Unavailable push services kept in memory. */
export const OUTAGE_SITES_MAX = 1_000;
/** Devices whose message waits for an unavailable service; with this many, the topic queue waits too. */
export const PARKED_MAX = 10_000;
/** Attempts to read a page of devices, and the pause between them. */
export const PAGE_TRIES_MAX = 5;
export const PAGE_RETRY_MS = SECOND_MS;
/** An access token is replaced this long before it expires. */
export const ACCESS_TOKEN_MARGIN_MS = MINUTE_MS;

/** Concurrent requests that send to users and tokens; further requests are refused. */
export const SENDS_AT_ONCE_MAX = 1_000;
/** Queued messages to topics; further messages are refused. */
export const TOPIC_MESSAGES_WAITING_MAX = 1_000;
/** Concurrent messages to topics: one tries its devices; the others wait for their turn or for a service. */
export const TOPIC_MESSAGES_AT_ONCE_MAX = 20;
/** Tries of a message to a topic: each stop and each crash of the server in between counts as one. */
export const TOPIC_RETRIES_MAX = 1_000;
/** Time between two saves of the position of a message to a topic. */
export const TOPIC_SAVE_INTERVAL_MS = SECOND_MS;
/** Devices read per page, and results written per transaction. */
export const DEVICES_PER_PAGE = 200;
export const RESULTS_PER_WRITE = 100;
/** Grace period for running calls when the server stops. Their requests are answered after it, before they are cut off. */
export const STOP_GRACE_MS = 4 * SECOND_MS;

/** Time for which rows of the log are shown and kept. */
export const LOG_RETENTION_MS = DAY_MS;
/** Rows of the log; above it the oldest are removed before the retention ends. */
export const LOGS_MAX = 200_000;
/** Characters of a title, body or error in a row of the log. */
export const LOG_TEXT_LENGTH_MAX = 1_000;
/** Rows per answer: the default and the maximum. */
export const LOGS_LIMIT_DEFAULT = 50;
export const LOGS_LIMIT_MAX = 1_000;
export const SWEEP_INTERVAL_MS = MINUTE_MS;
/** The pause between two steps of one sweep, so that requests are handled in between. */
export const SWEEP_PAUSE_MS = 20;
export const SWEEP_STEP_ROWS = 500;

if (TOPIC_CALLS_AT_ONCE_MAX >= CALLS_AT_ONCE_MAX) {
  throw new Error("messages to topics must leave calls for other messages");
}
if (RESULTS_PER_WRITE > SWEEP_STEP_ROWS) {
  throw new Error("a step of the sweep must remove at least as many rows as a write adds");
}
if (STOP_GRACE_MS >= UNDER_WAY_MAX_MS) {
  throw new Error("a sending request must be answered before a stop cuts it off");
}

/** Devices, and topics, per page of an administrator's list. */
export const DEVICES_LISTED_DEFAULT = 50;
export const DEVICES_LISTED_MAX = 200;
export const TOPICS_LISTED_DEFAULT = 50;
export const TOPICS_LISTED_MAX = 200;
/** Rows that a page of a list reads at once, and rows that it examines in all: if few of them match, the page is short. */
export const LISTED_CHUNK = 250;
export const LISTED_SCAN_MAX = 20_000;
/** Range of device numbers that one step of counting a topic covers. */
export const TOPIC_COUNT_STEP = 20_000;
