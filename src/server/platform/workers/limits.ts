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
/** The share of BUSY_MS for which the main process's event loop has been busy when a worker starts, and the share of the workers before it. */
export const BUSY_MS = 10 * SECOND_MS;
export const BUSY_SHARE = 0.7;
export const BUSY_WORKERS_SHARE = 0.5;
/** The interval at which the processor time of the event loop is read. */
export const BUSY_LOOK_MS = 2 * SECOND_MS;
/** The most workers that start by themselves, and the memory that must be available for each. */
export const STARTED_MAX = 7;
export const STARTED_MEMORY_BYTES = 256 * 1024 * 1024;
/** The interval at which the requests of all processes are compared after a start, and the time for which they are. */
export const EVEN_LOOK_MS = SECOND_MS;
export const EVEN_MAX_MS = 60 * SECOND_MS;
/** The share of its fair part from which a process has too many requests. */
export const EVEN_SHARE = 1.25;
/** The requests a second of all processes below which nobody is asked to leave. */
export const EVEN_REQUESTS_MIN = 50;
/** The time without a request after which a worker gives back memory, and gives signs of life more seldom. */
export const IDLE_MS = 30 * SECOND_MS;
export const IDLE_SIGN_MS = 2 * SECOND_MS;
