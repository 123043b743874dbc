import { MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/** Close codes of all areas. */
export const CLOSE = {
  goingAway: 1001,
  /** Bun's code for a connection that was lost without a close frame. */
  lost: 1006,
  flood: 1008,
  tryLater: 1013,
  protocol: 4000,
  sessionEnded: 4003,
} as const;

/** Connections open at once per client network. All clients behind a proxy without `server.trustProxy` are one network. */
export const CONNECTIONS_PER_CLIENT_MAX = 20_000;
/** Anonymous connections among them, for which nobody had to sign in. */
export const ANONYMOUS_PER_CLIENT_MAX = 5_000;
/** Maximal UTF-8 bytes of one unit of a JavaScript string. */
export const CHARACTER_MAX_BYTES = 3;
/** Length of a message before `auth`: room for a token. */
export const UNAUTHENTICATED_MESSAGE_MAX_CHARS = 32 * 1024;

/** Queued messages of one connection, waiting for their turn or for an earlier message. */
export const WAITING_MESSAGES_MAX = 1_000;
/** Characters of queued messages, per client network and of all. */
export const WAITING_PER_CLIENT_MAX_CHARS = 32 * 1024 * 1024;
export const WAITING_MAX_CHARS = 128 * 1024 * 1024;

/**
 * Rate and burst of dropped messages per connection; further ones close it. A read from a socket holds up to 65,536 short
 * messages, which are dropped one by one before anything else runs, at 4 us each.
 */
export const DROPPED_PER_SECOND_MAX = 4_000;
/** Rate and burst of ping frames per connection; a further one closes it. Bun answers each by itself. */
export const PING_FRAMES_PER_SECOND_MAX = 1_000;

/** Length from which a message is long: its cost is mostly its length, which is metered. */
export const LONG_MESSAGE_MIN_CHARS = 4 * 1024;
/** Rate and burst of the characters of long messages per client network. */
export const CLIENT_CHARS_PER_SECOND = 8 * 1024 * 1024;
export const CLIENT_CHARS_AT_ONCE = 32 * 1024 * 1024;
/** Characters of a `type`, and of a problem, that an error message repeats. */
export const TYPE_SHOWN_LENGTH = 64;
export const PROBLEM_SHOWN_LENGTH = 500;

/** Upgrades waiting for a place among the unauthenticated connections, per client network and of all. */
export const PLACE_WAITING_PER_CLIENT_MAX = 100;
export const PLACE_WAITING_MAX = 10_000;
/** Time that an upgrade waits for a place. */
export const PLACE_TIMEOUT_MS = 2 * SECOND_MS;

/** Bytes of a WebSocket message above which its connection is closed, unless an area accepts longer ones. */
export const FRAME_MAX_BYTES = 1024 * 1024;
/** Waiting bytes above which Bun closes a socket without a close frame. Areas close slow connections earlier. */
export const BACKPRESSURE_MAX_BYTES = 16 * 1024 * 1024;
/**
 * Silence after which a socket is closed: its peer has vanished. Bun pings it 16 s before, so after 24 s of silence, which
 * prevents proxies that cut idle connections (usually after 60 s) from cutting it.
 */
export const IDLE_TIMEOUT_SECONDS = 40;

/**
 * Bytes that may wait on the way through a process that relays a socket, without counting as waiting for the client: the system
 * buffers as much for a connection, and little between processes.
 */
export const RELAY_BUFFER_BYTES = 4 * 1024 * 1024;
/** Change of the bytes that wait for a client at which the process that relays its socket reports them. */
export const RELAY_REPORT_BYTES = 128 * 1024;
/** Bytes waiting to be sent to all sockets together. */
export const BACKLOGS_MAX_BYTES = 192 * 1024 * 1024;
/** Level down to which sockets are cut off once the bound is exceeded, so that the next message does not exceed it again. */
export const BACKLOGS_LEFT_BYTES = (BACKLOGS_MAX_BYTES / 4) * 3;
/** Bytes waiting for sockets that the server has closed: the close frame follows them, and Bun keeps both until they are read. */
export const CLOSING_MAX_BYTES = 64 * 1024 * 1024;
/** Time that Bun keeps them: 17 s, as measured. */
export const CLOSING_MS = 20 * SECOND_MS;
/** Bytes of messages that wait for the log of a cluster, for all sockets together. */
export const HELD_MAX_BYTES = 64 * 1024 * 1024;
/** Length from which Bun hands a message to the system at once; it keeps shorter ones until the end of the turn. */
export const SENT_AT_ONCE_MIN_BYTES = 16 * 1024;
/** The time without a message after which a node that stops takes it that all were sent, and the time that it waits for that at most. */
export const QUIET_MS = 40;
export const QUIET_MAX_MS = 400;

if (IDLE_TIMEOUT_SECONDS * SECOND_MS >= MINUTE_MS) {
  throw new Error("a silent socket must be pinged within a minute");
}
