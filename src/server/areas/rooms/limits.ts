import type { Millis } from "../../../kernel/clock.ts";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";
import type { RoomConfig, RoomsConfig } from "../../config/types.ts";
import type { ConnectionLimits } from "../../sockets/connection.ts";

// Defaults of the options of a namespace.
const PLAYERS_MAX = 100;
const STATE_MAX_BYTES = 1024 * 1024;
/** The highest `maxStateSize`, and the bound of the server state. */
export const STATE_CEILING_BYTES = 10 * 1024 * 1024;
const MESSAGES_PER_SECOND = 10;
const AUTH_TIMEOUT_MS = 5 * SECOND_MS;
const RECONNECT_TIMEOUT_MS = 30 * SECOND_MS;
const SAVE_INTERVAL_MS = MINUTE_MS;
const STATE_TTL_MS = DAY_MS;
const IDLE_TIMEOUT_MS = 300 * SECOND_MS;

export const DELTA_DEPTH_MAX = 5;
export const DELTA_INTERVAL_MS = 50;
export const HANDLER_TIMEOUT_MS = 5 * SECOND_MS;
const PENDING_PER_ADDRESS_MAX = 5;

/** Members of one object or array in a state. */
export const STATE_MEMBERS_MAX = 10_000;
export const METADATA_MAX_BYTES = 16 * 1024;
/** Longest delay of a timer: a century, so that its due time is a valid date. */
export const TIMER_DELAY_MAX_MS = 100 * 365 * DAY_MS;
/** Tasks waiting in one room. */
export const MAILBOX_MAX = 10_000;
/** Characters of waiting messages in one room, and in all rooms together. */
export const MAILBOX_MAX_CHARS = 8 * 1024 * 1024;
export const MAILBOXES_MAX_CHARS = 32 * 1024 * 1024;
/** Minimal interval between lists of players, and a long list's maximal share of the room's time. */
export const PLAYERS_INTERVAL_MS = 100;
export const PLAYERS_SHARE = 1 / 20;
/** Players in a list. */
export const PLAYERS_LISTED_MAX = 1_000;
/** Time of one room per second, and its burst after it was idle. */
export const ROOM_MS_PER_SECOND = 500;
export const ROOM_BURST_MS = 500;
/**
 * Characters charged as a millisecond of sending, since the text is copied to the socket, and the time charged per send for its
 * system call.
 */
export const SENT_CHARS_PER_MS = 1024 * 1024;
export const SEND_MS = 0.002;
/** Bytes of JSON above which a state is serialised in slices, and its `sync` counts as large. */
export const SYNC_AT_ONCE_BYTES = 256 * 1024;
/** Characters of large `sync` messages of all connections that are sent and unread. */
export const SYNCS_UNREAD_MAX_CHARS = 32 * 1024 * 1024;
/** Time after which a client that does not read its `sync` no longer delays others. */
export const SYNC_UNREAD_MS = SECOND_MS;
/** Cache of serialised states for later joins: characters, and time to live. */
export const SYNC_TEXTS_MAX_CHARS = 48 * 1024 * 1024;
export const SYNC_TEXT_TTL_MS = 5 * SECOND_MS;
/** Values in the payload of an action: each costs a microsecond when it becomes part of a state. */
export const MESSAGE_VALUES_MAX = 20_000;
/** Bytes waiting for a slow client, beside two whole states. */
const BACKLOG_BYTES = 1024 * 1024;
/** Bytes of a message beside the state in the hints of `join`, or beside the payload of an action. */
const MESSAGE_OVERHEAD_BYTES = 64 * 1024;
/** Bytes of the longest message, however large a state may be. */
const MESSAGE_CEILING_BYTES = 1024 * 1024 + MESSAGE_OVERHEAD_BYTES;
/** Characters per second of one connection's long messages, beside one of the longest. */
const CHARS_PER_SECOND = 512 * 1024;
/** Characters of a room's id. */
export const ROOM_ID_LENGTH_MAX = 128;
/** Rooms in memory at once. */
export const LIVE_ROOMS_MAX = 100_000;

/** Bytes of JSON of a room's states in an administrator's view, which are serialised at once. */
export const VIEW_MAX_BYTES = 256 * 1024;

/** Interval between sweeps of expired rooms, rooms per step, and the bytes of their states after which a step ends. */
export const SWEEP_INTERVAL_MS = 10 * MINUTE_MS;
export const SWEEP_ROWS_MAX = 500;
export const SWEEP_BYTES = 4 * 1024 * 1024;
/** Hibernating rooms woken for their timers in one turn of the event loop. */
export const WAKE_ROOMS_MAX = 100;
/** Delay before due rooms are retried when there was no place in memory, or the file could not be read. */
export const WAKE_RETRY_MS = SECOND_MS;
/** Delay before a due timer is retried when the room's mailbox was full. */
export const TIMER_RETRY_MS = SECOND_MS;
/** Delay before a failed save is retried. */
export const SAVE_RETRY_MS = 5 * SECOND_MS;

/** Time passed to `load` to read a room regardless of its expiry. */
export const NEVER_EXPIRED = 0;

/**
 * Returns when a saved room expires. Rooms with players get two sweep intervals more, as each sweep renews them: after the server
 * was killed, they still have their whole time to live.
 */
export const expiryOf = (limits: RoomLimits, savedAt: Millis, isOccupied: boolean): Millis =>
  savedAt + limits.stateTtlMs + (isOccupied ? 2 * SWEEP_INTERVAL_MS : 0);

export interface RoomLimits {
  maxPlayers: number;
  stateMaxBytes: number;
  messagesPerSecond: number;
  authTimeoutMs: number;
  reconnectTimeoutMs: number;
  saveIntervalMs: number;
  stateTtlMs: number;
  idleTimeoutMs: number;
  pendingPerAddress: number;
  /** Bytes of the longest message. Depends on the size of the state, which a `join` may have in its hints. */
  messageMaxBytes: number;
  /** Bytes waiting for one client. Depends on the size of the state, which a `sync` sends whole. */
  backlogMaxBytes: number;
}

/** Returns the limits of a namespace: its config, with defaults. */
export function roomLimits(config: RoomConfig): RoomLimits {
  const stateMaxBytes = Math.min(config.maxStateSize ?? STATE_MAX_BYTES, STATE_CEILING_BYTES);
  return {
    maxPlayers: config.maxPlayers ?? PLAYERS_MAX,
    stateMaxBytes,
    messageMaxBytes: Math.min(stateMaxBytes + MESSAGE_OVERHEAD_BYTES, MESSAGE_CEILING_BYTES),
    backlogMaxBytes: 2 * stateMaxBytes + BACKLOG_BYTES,
    messagesPerSecond: config.messageRate ?? MESSAGES_PER_SECOND,
    authTimeoutMs: config.authTimeout ?? AUTH_TIMEOUT_MS,
    reconnectTimeoutMs: config.reconnectTimeout ?? RECONNECT_TIMEOUT_MS,
    saveIntervalMs: config.saveInterval ?? SAVE_INTERVAL_MS,
    stateTtlMs: config.stateTtl ?? STATE_TTL_MS,
    idleTimeoutMs: config.idleTimeout ?? IDLE_TIMEOUT_MS,
    pendingPerAddress: config.pendingPerAddress ?? PENDING_PER_ADDRESS_MAX,
  };
}

/** Returns the limits of a namespace's connections. */
export const connectionLimits = (limits: RoomLimits): ConnectionLimits => ({
  authTimeoutMs: limits.authTimeoutMs,
  messagesPerSecond: limits.messagesPerSecond,
  messageMaxBytes: limits.messageMaxBytes,
  charsPerSecond: CHARS_PER_SECOND,
  charsAtOnce: limits.messageMaxBytes,
  backlogMaxBytes: limits.backlogMaxBytes,
});

/** Returns the maximal bytes waiting for a client of any namespace. 0 without rooms. */
export function roomBacklogMaxBytes(config: RoomsConfig): number {
  return Math.max(0, ...Object.values(config).map((one) => roomLimits(one).backlogMaxBytes));
}

/** Returns the maximal bytes of a message from a client of any namespace. 0 without rooms. */
export function roomMessageMaxBytes(config: RoomsConfig): number {
  const sizes = Object.values(config).map((one) => roomLimits(one).messageMaxBytes);
  return Math.max(0, ...sizes);
}
