import { MINUTE_MS } from "../kernel/duration.ts";

/** Spec: Limits / Realtime. The filters' 5 conditions are counted where filters are parsed, in the tables. */
export const PRESENCE_STATE_MAX_BYTES = 1_024;
export const PRESENCE_TTL_MS = 60_000;

/** Decisions 10. */
export const AUTH_TIMEOUT_MS = 5_000;
export const BATCH_THRESHOLD = 10;
/** Messages per second and connection; as many may come at once. */
export const MESSAGE_RATE = 100;
export const PENDING_PER_ADDRESS_MAX = 50;
/** A socket with more than this waiting when the next message comes is closed. */
export const WAITING_MAX_BYTES = 1024 * 1024;

/** Open sockets of one address: a proxy without `server.trustProxy` is one address. */
export const SOCKETS_PER_ADDRESS_MAX = 20_000;
export const SUBSCRIPTIONS_PER_SOCKET_MAX = 100;
export const TRACKED_PER_SOCKET_MAX = 100;
export const CHANNEL_LENGTH_MAX = 512;
export const EVENT_LENGTH_MAX = 256;
/** One message of a client, or the payload of a broadcast. */
export const MESSAGE_MAX_BYTES = 256 * 1024;
/** The body around a broadcast's payload: escapes and white space take room in it, and not in a message. */
export const BROADCAST_BODY_MAX_BYTES = 4 * MESSAGE_MAX_BYTES;
/** Characters of the JSON of one subscription's filters. */
export const FILTERS_LENGTH_MAX = 65_536;
/** Messages of one connection that wait while an earlier one is being answered. */
export const MAILBOX_MAX = 1_000;
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
/** A rule that has not answered by then denies, as those of rooms do. */
export const RULE_TIMEOUT_MS = 5_000;

/** Changes that may wait for one audience, whose rule is slow; past it, its sockets are closed as too slow. */
export const AUDIENCE_WAITING_MAX = 50_000;
/** How long deliveries hold the event loop before others get a turn. */
export const SLICE_MS = 4;
/** A replay pauses while this much waits, well below what closes a socket. */
export const REPLAY_WAITING_MAX_BYTES = 256 * 1024;
/** Changes that a replay looks at before others get a turn. */
export const REPLAY_SLICE_CHANGES = 200;
