import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The interval at which an owner says that it is there, and the silence after which a follower gives its connection up. */
export const ALIVE_MS = SECOND_MS;
export const SILENT_MAX_MS = 4 * SECOND_MS;
/** The time within which an owner that leaves answers what it has taken. */
export const LEAVING_MAX_MS = 8 * SECOND_MS;
/** The delay before a follower connects to an owner again. */
export const RECONNECT_MS = 100;
/** Followers of one owner. */
export const FOLLOWERS_MAX = 64;
/** Messages that wait for a follower that does not read; with more, its connection is ended. */
export const MESSAGES_WAITING_MAX = 10_000;
/** Characters of a message. */
export const MESSAGE_MAX_LENGTH = 4_096;
