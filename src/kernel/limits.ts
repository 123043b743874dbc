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
/** Time from the signal to the end of the process: container runtimes kill a process after 10 s. */
export const STOP_MAX_MS = 8 * SECOND_MS;
/** Time that requests, after-hooks and sends to providers in progress have to finish once a stop begins. */
export const UNDER_WAY_MAX_MS = 5 * SECOND_MS;
/** Time that a step gets whose own limit has passed before it begins. */
export const STEP_MIN_MS = 100;
