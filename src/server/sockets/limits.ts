import { MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/** Close codes that all areas use. */
export const CLOSE = {
  goingAway: 1001,
  /** Bun's code for a connection that was lost without a close frame. */
  lost: 1006,
  flood: 1008,
  tryLater: 1013,
  protocol: 4000,
  sessionEnded: 4003,
} as const;

/** Connections open at once of one client network: a proxy without `server.trustProxy` is one. */
export const CONNECTIONS_PER_CLIENT_MAX = 20_000;
/** Those of them that have authenticated without a user, for which nobody had to sign in. */
export const ANONYMOUS_PER_CLIENT_MAX = 5_000;
/** Bytes that one unit of a JavaScript string takes in UTF-8, at most. */
export const CHARACTER_MAX_BYTES = 3;
/** Before `auth`, a message has room for a token. */
export const UNAUTHENTICATED_MESSAGE_MAX_CHARS = 32 * 1024;

/** Time that messages may take in one turn of the event loop, before requests and timers have theirs. */
export const TURN_MS = 4;
/** Time in one turn of the event loop in which rights are asked again. */
export const RIGHTS_TURN_MS = 4;
/** Messages of one connection that wait for their turn or for an earlier message. */
export const WAITING_MESSAGES_MAX = 1_000;
/** Characters of the messages that wait, of one client network and of all. */
export const WAITING_PER_CLIENT_MAX_CHARS = 32 * 1024 * 1024;
export const WAITING_MAX_CHARS = 128 * 1024 * 1024;

/**
 * Messages of one connection that are dropped in a second, and at once; further ones close it. A read from a socket holds up
 * to 65,536 short messages, which are dropped one by one before anything else runs, at 4 us each.
 */
export const DROPPED_PER_SECOND_MAX = 4_000;
/** Ping frames of one connection, in a second and at once; a further one closes it. Bun answers each by itself. */
export const PING_FRAMES_PER_SECOND_MAX = 1_000;

/** A message is long from this many characters on: what it costs is mostly its length, which is metered. */
export const LONG_MESSAGE_MIN_CHARS = 4 * 1024;
/** Characters of long messages that one client network may send in a second, and at once. */
export const CLIENT_CHARS_PER_SECOND = 8 * 1024 * 1024;
export const CLIENT_CHARS_AT_ONCE = 32 * 1024 * 1024;
/** Characters of a `type` that an error repeats, and of what is wrong with a message. */
export const TYPE_SHOWN_LENGTH = 64;
export const PROBLEM_SHOWN_LENGTH = 500;

/** Upgrades of one client network that wait for a place among the unauthenticated connections, and of all. */
export const PLACE_WAITING_PER_CLIENT_MAX = 100;
export const PLACE_WAITING_MAX = 10_000;
/** How long an upgrade waits for a place. */
export const PLACE_TIMEOUT_MS = 2 * SECOND_MS;

/** A larger WebSocket message closes its connection, unless an area accepts longer ones. */
export const FRAME_MAX_BYTES = 1024 * 1024;
/** Bun closes a socket without a close frame when more waits for it. Areas close slow connections before. */
export const BACKPRESSURE_MAX_BYTES = 16 * 1024 * 1024;
/**
 * A socket from which nothing has come for so long is closed: its peer has vanished. Bun pings it 16 s before, so after 24 s
 * of silence, which keeps proxies that cut idle connections (usually after 60 s) from cutting it.
 */
export const IDLE_TIMEOUT_SECONDS = 40;

/** Bytes that wait to be sent to all sockets together. */
export const BACKLOGS_MAX_BYTES = 192 * 1024 * 1024;
/** Above the bound, sockets are cut off until this is left, so that the next message does not exceed it again. */
export const BACKLOGS_LEFT_BYTES = (BACKLOGS_MAX_BYTES / 4) * 3;
/** Bytes that may wait for sockets that the server has closed: the close frame follows them, and Bun keeps both until they are read. */
export const CLOSING_MAX_BYTES = 64 * 1024 * 1024;
/** How long Bun keeps them: 17 s, as measured. */
export const CLOSING_MS = 20 * SECOND_MS;
/** Bun hands a message of this length to the system at once, and keeps shorter ones until the end of the turn. */
export const SENT_AT_ONCE_MIN_BYTES = 16 * 1024;

if (IDLE_TIMEOUT_SECONDS * SECOND_MS >= MINUTE_MS) {
  throw new Error("a silent socket must be pinged within a minute");
}
