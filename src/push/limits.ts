import { DAY_MS, MINUTE_MS, SECOND_MS } from "../kernel/duration.ts";
import { UNDER_WAY_MAX_MS } from "../kernel/stop.ts";

/** Characters of a device's id. */
export const DEVICE_ID_LENGTH_MAX = 256;
/** Characters of a token: FCM's have some 160, a Web Push subscription as JSON some 500. */
export const TOKEN_LENGTH_MAX = 4096;
/** Of one user. One more takes the place of the device that registered longest ago. */
export const DEVICES_PER_USER_MAX = 50;
/** Topics of one device. */
export const TOPICS_PER_DEVICE_MAX = 200;
/** Decisions 11. */
export const TOPIC_LENGTH_MAX = 128;
/** Bytes of JSON. Spec: Limits, admin metadata. */
export const METADATA_MAX_BYTES = 16 * 1024;
/** Users of one `send-many`. */
export const USER_IDS_MAX = 1_000;
/** A body: a token or a message, escapes included; of `send-many`, with its users' ids. */
export const BODY_MAX_BYTES = 64 * 1024;
export const SEND_MANY_BODY_MAX_BYTES = 1024 * 1024;

/** Bytes of a message without its raw overrides, as JSON: what FCM takes at most. */
export const MESSAGE_MAX_BYTES = 4096;
/** Bytes of the raw overrides as JSON. */
export const OVERRIDES_MAX_BYTES = 4096;
/** Characters of an image's address, of a sound's name, of `collapseId` (APNs takes 64 bytes). */
export const IMAGE_LENGTH_MAX = 2048;
export const SOUND_LENGTH_MAX = 256;
export const COLLAPSE_ID_LENGTH_MAX = 64;
/** Four weeks: what FCM and push services take at most. */
export const TTL_MAX_SECONDS = 28 * 24 * 3600;
export const BADGE_MAX = 2 ** 31 - 1;

/** Calls of providers at once, of the whole server. Decisions 11. */
export const CALLS_AT_ONCE_MAX = 50;
/** Of these, what messages to topics take at most: a message to one user never waits for all of a broadcast. */
export const TOPIC_CALLS_AT_ONCE_MAX = 40;
/** A provider that has not answered by then has failed. Decisions 11. */
export const CALL_TIMEOUT_MS = 10 * SECOND_MS;
/** Pauses before the second and the third try, where the provider names none. Decisions 11. */
export const RETRY_DELAYS_MS: readonly number[] = [500, 1_000];
/** A longer `Retry-After` counts as this. */
export const RETRY_AFTER_MAX_MS = 10 * SECOND_MS;
/** A push service that has let so many calls in a row run out of time is left alone for a while. */
export const SILENCES_BEFORE_REST = 5;
export const SILENCE_REST_MS = 30 * SECOND_MS;
/** Silent push services that are remembered. */
export const SILENT_SITES_MAX = 1_000;
/** How long a push service may be out before what waits for it has failed. */
export const OUTAGE_MAX_MS = 5 * MINUTE_MS;
/** The pause after the first failure; each further one is twice as long. */
export const OUTAGE_PAUSE_FIRST_MS = SECOND_MS;
export const OUTAGE_PAUSE_MAX_MS = 30 * SECOND_MS;
/** Push services that are out at once, as far as they are remembered. */
export const OUTAGE_SITES_MAX = 1_000;
/** Messages to devices that wait for a service to be back; with so many, topics wait too. */
export const PARKED_MAX = 10_000;
/** A page of devices that cannot be read is tried again so often, after so long. */
export const PAGE_TRIES_MAX = 5;
export const PAGE_RETRY_MS = SECOND_MS;
/** An access token is replaced so long before it expires. */
export const ACCESS_TOKEN_MARGIN_MS = MINUTE_MS;

/** Requests that send to users and tokens at once; one more is refused. */
export const SENDS_AT_ONCE_MAX = 1_000;
/** Messages to topics that wait for the one before them; one more is refused. */
export const TOPIC_MESSAGES_WAITING_MAX = 1_000;
/** Devices that are read, and results that are written, at a time. */
export const DEVICES_PER_PAGE = 200;
export const RESULTS_PER_WRITE = 100;
/** When the server stops, calls under way have so long to be answered: their requests are answered after that, and then cut off. */
export const STOP_GRACE_MS = 4 * SECOND_MS;

/** Spec: Limits, push log retention. */
export const LOG_RETENTION_MS = DAY_MS;
/** Rows; the oldest go before their day is over. */
export const LOGS_MAX = 200_000;
/** Characters of a title, body or error in a row. */
export const LOG_TEXT_LENGTH_MAX = 1_000;
/** Spec: Limits, push logs default limit; decisions 11. */
export const LOGS_LIMIT_DEFAULT = 50;
export const LOGS_LIMIT_MAX = 1_000;
export const SWEEP_INTERVAL_MS = MINUTE_MS;
/** The pause between two steps of one sweep, so that requests come in between. */
export const SWEEP_PAUSE_MS = 20;
export const SWEEP_STEP_ROWS = 500;

if (TOPIC_CALLS_AT_ONCE_MAX >= CALLS_AT_ONCE_MAX) {
  throw new Error("a message to a topic must leave calls to others");
}
if (RESULTS_PER_WRITE > SWEEP_STEP_ROWS) {
  throw new Error("a step of the sweep must remove as many rows as a write adds");
}
if (STOP_GRACE_MS >= UNDER_WAY_MAX_MS) {
  throw new Error("a request that sends must be answered before a stop cuts it off");
}
