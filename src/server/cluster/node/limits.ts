import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The interval at which an owner says that it is there, and the silence after which a follower gives its connection up. */
export const ALIVE_MS = SECOND_MS;
export const SILENT_MAX_MS = 4 * SECOND_MS;
/** The time after which an owner takes a follower's sockets to be closed: one that hears nothing has given its connections up by then. */
export const SOCKETS_TOLD_MAX_MS = SILENT_MAX_MS + ALIVE_MS;
/** The time within which an owner that leaves answers what it has taken. */
export const LEAVING_MAX_MS = 8 * SECOND_MS;
/** The time that an owner that leaves waits for its followers to hear it. */
export const LEAVING_HEARD_MAX_MS = 500;
/** The interval of looks whether it has; also the time for requests that were on their way when it said so. */
export const LEAVING_LOOK_MS = 20;
/** The delay before a follower connects to an owner again. */
export const RECONNECT_MS = 100;
/** Followers of one owner. */
export const FOLLOWERS_MAX = 64;
/** Messages that wait for a follower that does not read; with more, its connection is ended. */
export const MESSAGES_WAITING_MAX = 10_000;
/** Characters of a message. */
export const MESSAGE_MAX_LENGTH = 4_096;
/** The time that a start waits for PostgreSQL, and the delay between two tries. */
export const POSTGRES_WAIT_MS = 60 * SECOND_MS;
export const POSTGRES_RETRY_MS = 500;
/** The interval of looks at what the protocol does not need. */
export const SURVEY_MS = 10 * SECOND_MS;
/** The time of a statement that drops a part of the log: those who have read it may keep it waiting for as long as they like. */
export const TRIM_STATEMENT_MAX_MS = 5 * SECOND_MS;
/** Positions of one partition of the log, which is dropped whole. */
export const PARTITION_POSITIONS = 50_000;
/** The time that a request waits for an owner before it is refused. */
export const OWNER_WAIT_MS = 3 * SECOND_MS;
/** Requests that wait for an owner; more are refused at once. */
export const WAITING_MAX = 10_000;
/** The time that a read waits for a position that its client has seen, before the owner is asked. */
export const POSITION_WAIT_MS = 50;
/** The time for which requests of a token see what it has written, without a position of theirs. */
export const STICKY_MS = 5 * SECOND_MS;
export const STICKY_MAX = 100_000;
/** The time for which the status of a cluster watches leases: longer than that between two renewals. */
export const WATCH_MS = 2_500;
/** The time within which an owner answers an operator, and within which a node has what was moved to it. */
export const ASK_MAX_MS = 5 * SECOND_MS;
export const MOVE_MAX_MS = 10 * SECOND_MS;
export const MOVE_LOOK_MS = 50;
/** The time for which nodes leave the group to the one that it is moved to. */
export const ABSTAIN_MS = 5 * SECOND_MS;
/** Ends of the log that a node remembers, for the lag of others. */
export const LAG_SAMPLES = 1_000;
