import type { RoomConfig, RoomsConfig } from "../config/types.ts";
import type { Millis } from "../kernel/clock.ts";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../kernel/duration.ts";
import type { ConnectionLimits } from "../sockets/connection.ts";

/** Spec: Limits / Rooms; decisions 9. Each of the first block can be set per namespace. */
const PLAYERS_MAX = 100;
const STATE_MAX_BYTES = 1024 * 1024;
/** What `maxStateSize` can be raised to; the bound of the server state, which no client pays for, as well. */
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

/** Members of one object or array of a state. */
export const STATE_MEMBERS_MAX = 10_000;
/** What the specification leaves open is bounded all the same. */
export const METADATA_MAX_BYTES = 16 * 1024;
/** The longest delay of a timer: a century, so that the time it is due at stays a date. */
export const TIMER_DELAY_MAX_MS = 100 * 365 * DAY_MS;
/** What one handler may send before it has ended. */
export const MESSAGES_PER_HANDLER_MAX = 1_000;
/** Tasks of one room that wait for their turn. */
export const MAILBOX_MAX = 10_000;
/** Places of tasks that have begun, before the queue is made shorter. */
export const MAILBOX_TAKEN_MAX = 1_000;
/** Characters of the messages that wait for their turn in one room, and in all rooms together. */
export const MAILBOX_MAX_CHARS = 8 * 1024 * 1024;
export const MAILBOXES_MAX_CHARS = 32 * 1024 * 1024;
/** What all rooms together take of one turn of the event loop; a handler that runs already may exceed it. */
export const ROOMS_TURN_MS = 4;
/** What one room may take of each second, and what it may take at once after a rest. */
export const ROOM_MS_PER_SECOND = 500;
export const ROOM_BURST_MS = 500;
/** A send counts as so much time of its turn: copies of the text to the socket, and the system call. */
export const SENT_CHARS_PER_MS = 1024 * 1024;
export const SEND_MS = 0.002;
/** A state of more JSON than this is serialised in slices, and its `sync` waits for its turn among large ones. */
export const SYNC_AT_ONCE_BYTES = 256 * 1024;
/** JSON of a large state that is made in one step. */
export const STATE_SLICE_BYTES = 32 * 1024;
/** Values of a saved state that are taken in again in one step. */
export const RESTORED_VALUES_PER_STEP = 2_000;
/** Large `sync` messages that were sent and not read yet, of all connections; further ones wait. */
export const SYNCS_UNREAD_MAX_CHARS = 32 * 1024 * 1024;
/** A client that does not read its `sync` keeps others waiting no longer than this. */
export const SYNC_UNREAD_MS = SECOND_MS;
/** Serialised states that are kept for the next joins: their characters, and for how long. */
export const SYNC_TEXTS_MAX_CHARS = 48 * 1024 * 1024;
export const SYNC_TEXT_TTL_MS = 5 * SECOND_MS;
/** Values in the message of one action: a state that takes them in looks at each, and freezes it. */
export const MESSAGE_VALUES_MAX = 20_000;
/** Bytes that may wait for a slow client, beside two whole states, before it is closed with 1013. */
const BACKLOG_BYTES = 1024 * 1024;
/** What a message may have beside the state that `join` hints at, or an action's payload. */
const MESSAGE_OVERHEAD_BYTES = 64 * 1024;
/** The longest message, however large a state may be. */
const MESSAGE_CEILING_BYTES = 1024 * 1024 + MESSAGE_OVERHEAD_BYTES;
/** Characters of long messages of one connection in a second, beside one of the longest. */
const CHARS_PER_SECOND = 512 * 1024;
/** Characters of a room's id. */
export const ROOM_ID_LENGTH_MAX = 128;
/** Rooms in memory at once. */
export const LIVE_ROOMS_MAX = 100_000;

/** How often rooms past their time to live are deleted, and how many at a time. */
export const SWEEP_INTERVAL_MS = 10 * MINUTE_MS;
export const SWEEP_ROWS_MAX = 500;
/** Hibernated rooms that are woken for due timers in one turn. */
export const WAKE_ROOMS_MAX = 100;
/** When there was no place in memory for a room that was to be woken. */
export const WAKE_RETRY_MS = SECOND_MS;
/** After a failed save. */
export const SAVE_RETRY_MS = 5 * SECOND_MS;

/** Asks the file for a room whatever its time to live is. */
export const NEVER_EXPIRED = 0;

/** A room with somebody in it is renewed with each sweep: should the server be killed, it has its whole time left. */
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
  /** Not a setting: follows from the size of the state, which a `join` may hint at. */
  messageMaxBytes: number;
  /** Not a setting: follows from the size of the state, which a `sync` sends whole. */
  backlogMaxBytes: number;
}

/** The limits of a namespace: what its config says, else the specification's defaults. */
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

/** What a connection of a namespace may do. */
export const connectionLimits = (limits: RoomLimits): ConnectionLimits => ({
  authTimeoutMs: limits.authTimeoutMs,
  messagesPerSecond: limits.messagesPerSecond,
  messageMaxBytes: limits.messageMaxBytes,
  charsPerSecond: CHARS_PER_SECOND,
  charsAtOnce: limits.messageMaxBytes,
  backlogMaxBytes: limits.backlogMaxBytes,
});

/** What may wait for a client of any namespace that reads slowly. 0 without rooms. */
export function roomBacklogMaxBytes(config: RoomsConfig): number {
  return Math.max(0, ...Object.values(config).map((one) => roomLimits(one).backlogMaxBytes));
}

/** The longest message that a client of any namespace may send. 0 without rooms. */
export function roomMessageMaxBytes(config: RoomsConfig): number {
  const sizes = Object.values(config).map((one) => roomLimits(one).messageMaxBytes);
  return Math.max(0, ...sizes);
}
