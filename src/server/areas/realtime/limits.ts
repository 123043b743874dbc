import { MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";
import type { RealtimeConfig } from "../../config/types.ts";
import type { ConnectionLimits } from "../../sockets/connection.ts";

/** Bytes of JSON of one presence entry's state. */
export const PRESENCE_STATE_MAX_BYTES = 1_024;

// Defaults of the config.
export const PRESENCE_TTL_MS = MINUTE_MS;
export const BATCH_THRESHOLD = 10;
export const PENDING_PER_ADDRESS_MAX = 50;
const AUTH_TIMEOUT_MS = 5 * SECOND_MS;
const MESSAGES_PER_SECOND = 100;

/** Bytes of one message of a client, and of the payload of a broadcast. */
export const MESSAGE_MAX_BYTES = 256 * 1024;
/** Rate and burst for the characters of long messages of one connection. */
const CHARS_PER_SECOND = 256 * 1024;
const CHARS_AT_ONCE = 1024 * 1024;
/** Bytes waiting to be sent to a connection above which the next message closes it. */
const BACKLOG_MAX_BYTES = 1024 * 1024;

export const connectionLimits = (config: RealtimeConfig): ConnectionLimits => ({
  authTimeoutMs: config.authTimeout ?? AUTH_TIMEOUT_MS,
  messagesPerSecond: config.messageRate ?? MESSAGES_PER_SECOND,
  messageMaxBytes: MESSAGE_MAX_BYTES,
  charsPerSecond: CHARS_PER_SECOND,
  charsAtOnce: CHARS_AT_ONCE,
  backlogMaxBytes: BACKLOG_MAX_BYTES,
});

/** Bytes of a record as JSON above which an event leaves it out. */
export const EVENT_DATA_MAX_BYTES = 1024 * 1024;
/** Bytes of all records in the events of one request on one channel; further ones are left out. */
export const EVENTS_DATA_MAX_BYTES = 4 * 1024 * 1024;

export const SUBSCRIPTIONS_PER_CONNECTION_MAX = 200;
/** Characters of the id that a client gives a subscription. */
export const SUBSCRIPTION_ID_LENGTH_MAX = 128;
/** Characters of the `requestId` of a message that requests an answer. */
export const REQUEST_ID_LENGTH_MAX = 128;
export const TRACKED_PER_CONNECTION_MAX = 100;
export const CHANNEL_LENGTH_MAX = 512;
export const EVENT_LENGTH_MAX = 256;
/** Bytes of the request body with a broadcast's payload: its escapes and white space are not part of the message. */
export const BROADCAST_BODY_MAX_BYTES = 4 * MESSAGE_MAX_BYTES;
/** Relations in the filters of all subscriptions of one connection: each is asked for each record that changes. */
export const RELATIONS_PER_CONNECTION_MAX = 50;
/** Characters of the JSON of one subscription's filters. */
export const FILTERS_LENGTH_MAX = 65_536;
export const PRESENCE_MEMBERS_MAX = 20_000;

/** Bounds of the log of one namespace, kept for clients that reconnect; the first one reached applies. */
export const LOG_CHANGES_MAX = 10_000;
export const LOG_AGE_MAX_MS = 10 * MINUTE_MS;
export const LOG_MAX_BYTES = 32 * 1024 * 1024;

/** Pairs of user and channel whose view is remembered for clients that reconnect. */
export const VIEWS_MAX = 20_000;

/** Changes waiting for one audience whose rule is slow. Above it, its sockets are closed as too slow. */
export const AUDIENCE_WAITING_MAX = 50_000;
export const AUDIENCE_WAITING_MAX_BYTES = 32 * 1024 * 1024;
/** Interval between two `subscribed` with `resync` of one subscription that are sent because lookups may show other records. */
export const RESYNC_INTERVAL_MS = SECOND_MS;
/** Subscriptions to a table that are resynced within that interval. With more, it grows in proportion. */
export const RESYNC_SUBSCRIPTIONS = 1_000;
/** Subscriptions that adopt one answer of a rule together; further ones of equal users adopt theirs in another turn. */
export const ASKER_MEMBERS_MAX = 64;
/** Bytes waiting to be sent above which a replay pauses. Well below the bound that closes a connection. */
export const REPLAY_WAITING_MAX_BYTES = 256 * 1024;

/** Entries of a `presence_sync` that is sent at once; a longer one is sent in turns. */
export const SYNC_AT_ONCE_MEMBERS_MAX = 1_000;
/** Bytes of long syncs sent in one turn; at least one sync is sent. */
export const ARRIVALS_TURN_MAX_BYTES = 4 * 1024 * 1024;
/** Bytes of unread long syncs above which the next listeners wait, for at most ARRIVAL_PAUSES_MAX pauses. */
export const ARRIVALS_READING_MAX_BYTES = 32 * 1024 * 1024;
export const ARRIVAL_PAUSE_MS = 50;
export const ARRIVAL_PAUSES_MAX = 40;
/** Members of a topic that receive a message in one step: few, as a long message to a full socket may take 2 ms. */
export const SHARD_MEMBERS_MAX = 4;
/** Members whose sockets other processes hold: a message to them is one frame to each process, and takes milliseconds there. */
export const FAR_SHARD_MEMBERS_MAX = 250;
/** Members of such a shard whose cost here is that of one member. */
export const FAR_MEMBERS_AS_ONE = 25;
/** Bytes of waiting messages that are sent to a shard together; a longer message is sent alone. */
export const SHARD_TURN_MAX_BYTES = 64 * 1024;
/**
 * Time for sending in one turn of the event loop, and the estimated cost of sending: 12 us and 2.5 GB/s, or less than 12 us if
 * the last turn with so many members took less.
 */
export const FAN_OUT_TURN_US = 8_000;
export const SEND_US_MAX = 12;
export const SEND_US_MIN = 5;
export const SEND_MEASURED_MIN = 200;
export const SEND_BYTES_PER_US = 2_500;
/** Waiting bytes above which a topic accepts no more messages from clients. */
export const TOPIC_BEHIND_BYTES = 4 * 1024 * 1024;
/** Waiting bytes of all topics together above which changes wait in the logs of their tables. */
export const FAN_OUT_BEHIND_BYTES = 16 * 1024 * 1024;
