import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { LEASE_MS, RENEW_EVERY_MS } from "../protocol/limits.ts";

/** The time after which nobody waits for the log any longer: a write is answered within 4 s. */
export const WAIT_MAX_MS = 3 * SECOND_MS;
/** The time after which nobody waits for other nodes any longer: one that hangs has lost its lease by then. */
export const EVERYWHERE_MAX_MS = 15 * SECOND_MS;
/** Bytes of a file that the log gets whole, because it was there before the cluster. */
export const WHOLE_MAX_BYTES = 48 * 1024 * 1024;

if (EVERYWHERE_MAX_MS < LEASE_MS + 2 * RENEW_EVERY_MS) {
  throw new Error("A node that hangs must have lost its lease before nobody waits for it");
}
