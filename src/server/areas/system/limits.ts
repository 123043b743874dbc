import { MINUTE_MS } from "../../../kernel/time/duration.ts";
import type { ConnectionLimits } from "../../sockets/connection.ts";

/** Free bytes of the data directory's disk below which the server counts as unavailable. */
export const DISK_FREE_MIN_BYTES = 64 * 1024 * 1024;
/** Time for which file sizes are cached: summing them takes a system call for each open file. */
export const FILE_SIZES_KEPT_MS = 10_000;
/** Open files measured in one turn of the event loop. */
export const FILES_PER_TURN = 100;
/** Time after which a due job makes the queue count as stuck. */
export const JOB_OVERDUE_MS = 15 * MINUTE_MS;

/** Lines of the log in an answer: the default and the maximum. */
export const LOGS_LIMIT_DEFAULT = 100;
export const LOGS_LIMIT_MAX = 1_000;
/** Characters of a search text. */
export const LOGS_QUERY_LENGTH_MAX = 256;
/** Unauthenticated connections of one address that follow the log. */
export const TAIL_PENDING_MAX = 5;
/** Limits of a connection that follows the log: it sends little, and is closed if it does not read. */
export const TAIL_LIMITS: ConnectionLimits = {
  authTimeoutMs: 10_000,
  messagesPerSecond: 10,
  messageMaxBytes: 4_096,
  charsPerSecond: 16_384,
  charsAtOnce: 16_384,
  backlogMaxBytes: 1024 * 1024,
};
