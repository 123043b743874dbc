import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The delay with which a worker reports its answers, and how many it reports at once at most. */
export const ANSWERS_DELAY_MS = 200;
export const ANSWERS_MAX = 500;
/** The interval of the signs of life, and the time without one after which a worker is killed and replaced. */
export const SIGN_MS = 500;
export const SILENT_MAX_MS = 5 * SECOND_MS;
/** The time that a worker may take to load the config and listen. */
export const READY_MAX_MS = 20 * SECOND_MS;
/** The delay before a worker is started again that has lived for less than LIVED_MS; it doubles with each in succession. */
export const RESTART_MS = SECOND_MS;
export const RESTART_MAX_MS = 64 * SECOND_MS;
export const LIVED_MS = 10 * SECOND_MS;
