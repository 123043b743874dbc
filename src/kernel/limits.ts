import { SECOND_MS } from "./time/duration.ts";

/** Levels of nesting that a JSON value may have. Deeper values are attacks on recursive code. */
export const JSON_DEPTH_MAX = 64;
/** Members of one object in a body that is parsed in slices: each step takes longer the more members an object has. */
export const MEMBERS_MAX = 50_000;
/** An integer with at most this many digits is below the largest double. */
export const DOUBLE_DIGITS_MAX = 308;
/** The longest delay of a runtime timer, 24.8 days; a timer with a longer delay fires at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1;
/** Time zones that are cached: a formatter takes tens of kilobytes. */
export const ZONES_MAX = 32;
/** Days whose offset or label is cached: more than a century. */
export const ZONE_DAYS_MAX = 50_000;
/** Time that all work of one kind may take in a turn of the event loop, before the next kind has its own. */
export const TURN_MS = 4;
/**
 * Time that short pieces of work may take together in one turn before the next ones wait. It is long, because waiting costs more:
 * Bun sends a late answer of more than 16 KiB with twenty system calls.
 */
export const AT_ONCE_MS = 12;
/** Time from the signal to the end of the process: container runtimes kill a process after 10 s. */
export const STOP_MAX_MS = 8 * SECOND_MS;
/** Time that requests, after-hooks and sends to providers in progress have to finish once a stop begins. */
export const UNDER_WAY_MAX_MS = 5 * SECOND_MS;
/** Least time for a step whose own limit has passed before it begins. */
export const STEP_MIN_MS = 100;

/** Time for which a health report is cached: anybody may request one, at any rate. */
export const HEALTH_KEPT_MS = 1_000;

/** Levels of nesting that are shown of a value, as in the audit log. */
export const SHOWN_DEPTH_MAX = 20;
/** Member names whose classification as secret is cached. */
export const SHOWN_NAMES_MAX = 2_000;
/** Characters up to which a name is cached: a longer one is classified each time. */
export const SHOWN_NAME_LENGTH_MAX = 128;

/** Log lines kept in memory, and their total characters: fewer lines are kept when they are long. */
export const LOG_LINES_MAX = 10_000;
export const LOG_LINES_MAX_CHARACTERS = 8 * 1024 * 1024;
export const LOG_MESSAGE_LENGTH_MAX = 4_096;
/** Bytes of the facts of one log line. */
export const LOG_FACTS_MAX_BYTES = 8 * 1024;
