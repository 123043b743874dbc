import type { RealtimeConfig } from "../config/types.ts";
import { MINUTE_MS, SECOND_MS } from "../kernel/duration.ts";
import type { ConnectionLimits } from "../sockets/connection.ts";

/** JSON of one entry's state. */
export const PRESENCE_STATE_MAX_BYTES = 1_024;

// Defaults of the config.
export const PRESENCE_TTL_MS = MINUTE_MS;
export const BATCH_THRESHOLD = 10;
export const PENDING_PER_ADDRESS_MAX = 50;
const AUTH_TIMEOUT_MS = 5 * SECOND_MS;
const MESSAGES_PER_SECOND = 100;

/** One message of a client, or the payload of a broadcast. */
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

/** A larger record, as JSON, comes without its data. */
export const EVENT_DATA_MAX_BYTES = 1024 * 1024;
/** All records in the events of one request on one channel; those beyond it come without their data. */
export const EVENTS_DATA_MAX_BYTES = 4 * 1024 * 1024;

export const SUBSCRIPTIONS_PER_SOCKET_MAX = 100;
export const TRACKED_PER_SOCKET_MAX = 100;
export const CHANNEL_LENGTH_MAX = 512;
export const EVENT_LENGTH_MAX = 256;
/** The body around a broadcast's payload: escapes and white space take room in it, and not in a message. */
export const BROADCAST_BODY_MAX_BYTES = 4 * MESSAGE_MAX_BYTES;
/** Characters of the JSON of one subscription's filters. */
export const FILTERS_LENGTH_MAX = 65_536;
export const PRESENCE_MEMBERS_MAX = 20_000;

/** What the log of one namespace keeps for those who reconnect; whichever bound comes first. */
export const LOG_CHANGES_MAX = 10_000;
export const LOG_AGE_MAX_MS = 10 * MINUTE_MS;
export const LOG_MAX_BYTES = 32 * 1024 * 1024;
export const LOG_SWEEP_INTERVAL_MS = MINUTE_MS;
/** Tables that nobody listens to any more, and whose log is still kept. */
export const IDLE_FEEDS_MAX = 10_000;

/** Channels of users of whom it is known through which view they were lately seen. */
export const SEEN_VIEWS_MAX = 20_000;

/** Changes that may wait for one audience, whose rule is slow; past it, its sockets are closed as too slow. */
export const AUDIENCE_WAITING_MAX = 50_000;
export const AUDIENCE_WAITING_MAX_BYTES = 32 * 1024 * 1024;
/** How long deliveries hold the event loop before others get a turn. */
export const SLICE_MS = 4;
/** A replay pauses while this much waits, well below what closes a socket. */
export const REPLAY_WAITING_MAX_BYTES = 256 * 1024;
/** Changes that a replay looks at before others get a turn. */
export const REPLAY_SLICE_CHANGES = 200;

/** A `presence_sync` of no more entries is sent at once; longer ones in turns. */
export const SYNC_AT_ONCE_MEMBERS_MAX = 1_000;
/** Bytes of long syncs that are sent in one turn; at least one is. */
export const ARRIVALS_TURN_MAX_BYTES = 4 * 1024 * 1024;
/** With so much of them not read yet, the next ones wait, a pause at a time, and so many of these at most. */
export const ARRIVALS_READING_MAX_BYTES = 32 * 1024 * 1024;
export const ARRIVAL_PAUSE_MS = 50;
export const ARRIVAL_PAUSES_MAX = 40;
/** Members of a topic that are sent to in one go: few, as a long message to a full socket may take the system 2 ms. */
export const SHARD_MEMBERS_MAX = 4;
/** Messages that a shard has not got are sent to it together up to this; a longer one goes alone. */
export const SHARD_TURN_MAX_BYTES = 64 * 1024;
/** What one turn of the event loop may spend on sending, and what sending costs: measured at 12 us and 2.5 GB/s. */
export const FAN_OUT_TURN_US = 8_000;
export const SEND_US = 12;
export const SEND_BYTES_PER_US = 2_500;
/** A topic with so much to send takes no more from clients. */
export const TOPIC_BEHIND_BYTES = 4 * 1024 * 1024;
/** With so much to send in all topics together, changes wait in their tables' logs. */
export const FAN_OUT_BEHIND_BYTES = 16 * 1024 * 1024;
/** Nodes of a record that are counted to learn its size; one with more counts as if it were this large. */
export const RECORD_NODES_MAX = 131_072;
export const RECORD_ASSUMED_BYTES = 5 * 1024 * 1024;
