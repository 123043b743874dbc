import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The time after which nobody waits for the log any longer: a write is answered within 4 s. */
export const WAIT_MAX_MS = 3 * SECOND_MS;
/** Bytes of a file that the log gets whole, because it was there before the cluster. */
export const WHOLE_MAX_BYTES = 48 * 1024 * 1024;
