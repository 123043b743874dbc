import type { Millis } from "../../../kernel/clock.ts";
import { BACKOFF_FIRST_MS, BACKOFF_MAX_MS } from "../limits.ts";

/**
 * The delay after the failed try number `attempt`: 1 to 2 s after the first, doubling up to 30 to 60 min. Jobs that failed
 * together are tried again apart from each other. `random` is at least 0 and less than 1.
 */
export function backoffOf(attempt: number, random: number): Millis {
  const leastMs = Math.min(BACKOFF_FIRST_MS * 2 ** (attempt - 1), BACKOFF_MAX_MS / 2);
  return Math.floor(leastMs * (1 + random));
}
