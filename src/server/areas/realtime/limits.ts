import { MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";
import type { RealtimeConfig } from "../../config/types.ts";
import type { ConnectionLimits } from "../../sockets/connection.ts";

/** JSON of one entry's state. */
export const PRESENCE_STATE_MAX_BYTES = 1_024;

// Defaults of the config.
export const PRESENCE_TTL_MS = MINUTE_MS;
export const BATCH_THRESHOLD = 10;
export const PENDING_PER_ADDRESS_MAX = 50;
const AUTH_TIMEOUT_MS = 5 * SECOND_MS;
const MESSAGES_PER_SECOND = 100;

/** One message of a client, and the payload of a broadcast. */
export const MESSAGE_MAX_BYTES = 256 * 1024;
/** Characters of long messages of one connection, in a second and at once. */
const CHARS_PER_SECOND = 256 * 1024;
const CHARS_AT_ONCE = 1024 * 1024;
/** With more waiting to be sent to a connection, the next message closes it. */
const BACKLOG_MAX_BYTES = 1024 * 1024;

export const connectionLimits = (config: RealtimeConfig): ConnectionLimits => ({
  authTimeoutMs: config.authTimeout ?? AUTH_TIMEOUT_MS,
  messagesPerSecond: config.messageRate ?? MESSAGES_PER_SECOND,
  messageMaxBytes: MESSAGE_MAX_BYTES,
  charsPerSecond: CHARS_PER_SECOND,
  charsAtOnce: CHARS_AT_ONCE,
  backlogMaxBytes: BACKLOG_MAX_BYTES,
});

/** An event leaves a larger record (as JSON) out. */
export const EVENT_DATA_MAX_BYTES = 1024 * 1024;
/** All records in the events of one request on one channel; further ones are left out. */
export const EVENTS_DATA_MAX_BYTES = 4 * 1024 * 1024;

export const SUBSCRIPTIONS_PER_CONNECTION_MAX = 200;
/** Characters of the id that a client gives a subscription. */
export const SUBSCRIPTION_ID_LENGTH_MAX = 128;
/** Characters of the `requestId` of a message that wants an answer. */
export const REQUEST_ID_LENGTH_MAX = 128;
export const TRACKED_PER_CONNECTION_MAX = 100;
export const CHANNEL_LENGTH_MAX = 512;
export const EVENT_LENGTH_MAX = 256;
/** The body with a broadcast's payload: its escapes and white space are not part of the message. */
export const BROADCAST_BODY_MAX_BYTES = 4 * MESSAGE_MAX_BYTES;
/** Characters of the JSON of one subscription's filters. */
export const FILTERS_LENGTH_MAX = 65_536;
export const PRESENCE_MEMBERS_MAX = 20_000;

/** What the log of one namespace keeps for clients that reconnect, up to the first of these bounds. */
export const LOG_CHANGES_MAX = 10_000;
export const LOG_AGE_MAX_MS = 10 * MINUTE_MS;
export const LOG_MAX_BYTES = 32 * 1024 * 1024;

/** Pairs of user and channel whose view is known, for clients that reconnect. */
export const VIEWS_MAX = 20_000;

/** Changes that may wait for one audience whose rule is slow. Beyond it, its sockets are closed as too slow. */
export const AUDIENCE_WAITING_MAX = 50_000;
export const AUDIENCE_WAITING_MAX_BYTES = 32 * 1024 * 1024;
/** From one `subscribed` with `resync`, sent because lookups may show other records, to the next one of the same subscription. */
export const RESYNC_INTERVAL_MS = SECOND_MS;
/** Subscriptions to a table that get one within that time. With more, it is as many times longer. */
export const RESYNC_SUBSCRIPTIONS = 1_000;
/** Subscriptions that adopt one answer of a rule together: as many more are a user's own, and take further turns. */
export const ASKER_MEMBERS_MAX = 64;
/** Time that deliveries take in one turn of the event loop, and replays. */
export const SLICE_MS = 4;
/** A replay pauses while more waits to be sent. Well below what closes a connection. */
export const REPLAY_WAITING_MAX_BYTES = 256 * 1024;

/** A `presence_sync` of at most so many entries is sent at once, a longer one in turns. */
export const SYNC_AT_ONCE_MEMBERS_MAX = 1_000;
/** Bytes of long syncs that are sent in one turn; at least one sync is. */
export const ARRIVALS_TURN_MAX_BYTES = 4 * 1024 * 1024;
/** While more of long syncs is unread, the next listeners wait: pause by pause, at most so many. */
export const ARRIVALS_READING_MAX_BYTES = 32 * 1024 * 1024;
export const ARRIVAL_PAUSE_MS = 50;
export const ARRIVAL_PAUSES_MAX = 40;
/** Members of a topic that get a message in one step: few, as a long message to a full socket may take 2 ms. */
export const SHARD_MEMBERS_MAX = 4;
/** Waiting messages are sent to a shard together up to this size; a longer one is sent alone. */
export const SHARD_TURN_MAX_BYTES = 64 * 1024;
/** Time for sending in one turn of the event loop, and the cost of sending: 12 us and 2.5 GB/s, or less than 12 us if the last turn with so many members took less. */
export const FAN_OUT_TURN_US = 8_000;
export const SEND_US_MAX = 12;
export const SEND_US_MIN = 5;
export const SEND_MEASURED_MIN = 200;
export const SEND_BYTES_PER_US = 2_500;
/** A topic with more to send takes no more from clients. */
export const TOPIC_BEHIND_BYTES = 4 * 1024 * 1024;
/** While all topics together have more to send, changes wait in the logs of their tables. */
export const FAN_OUT_BEHIND_BYTES = 16 * 1024 * 1024;
