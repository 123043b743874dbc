import { SECOND_MS } from "./time/duration.ts";

/** Levels of nesting that a JSON value may have. Deeper values are attacks on recursive code. */
export const JSON_DEPTH_MAX = 64;
/** Members of one object in a body that is parsed in slices: each step takes longer the more members an object has. */
export const MEMBERS_MAX = 50_000;
/** An integer with at most this many digits is below the largest double. */
export const DOUBLE_DIGITS_MAX = 308;
/** The longest delay of a timer of the runtime, 24.8 days; one with a longer delay fires at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1;
/** Time zones that are kept: the formatter of one takes tens of kilobytes. */
export const ZONES_MAX = 32;
/** Days whose offset or label is kept: more than a century. */
export const ZONE_DAYS_MAX = 50_000;
/** Time that one piece of work may take before it yields to the event loop. */
export const TURN_MS = 4;
/**
 * Time that short pieces of work of one turn may take together before the next ones wait. It is long, because what waited costs more:
 * Bun sends a late answer of more than 16 KiB by twenty calls of the system.
 */
export const AT_ONCE_MS = 12;
/** Time from the signal to the end of the process: container runtimes kill a process after 10 s. */
export const STOP_MAX_MS = 8 * SECOND_MS;
/** Time that requests, after-hooks and sends to providers in progress have to finish once a stop begins. */
export const UNDER_WAY_MAX_MS = 5 * SECOND_MS;
/** Time that a step gets whose own limit has passed before it begins. */
export const STEP_MIN_MS = 100;

/** A report of the server's health is shared by all who ask within this time: everybody may ask, as often as they like. */
export const HEALTH_KEPT_MS = 1_000;

/** Levels of a value that is shown, as in the audit log. */
export const SHOWN_DEPTH_MAX = 20;
/** Names of members of which is remembered whether they are those of secrets. */
export const SHOWN_NAMES_MAX = 2_000;
/** Characters of such a name: a longer one is looked at each time. */
export const SHOWN_NAME_LENGTH_MAX = 128;

/** Lines of the log that are kept in memory, and their characters together: fewer lines are kept where they are long. */
export const LOG_LINES_MAX = 10_000;
export const LOG_LINES_MAX_CHARACTERS = 8 * 1024 * 1024;
export const LOG_MESSAGE_LENGTH_MAX = 4_096;
/** Bytes of the facts of a line. */
export const LOG_FACTS_MAX_BYTES = 8 * 1024;
