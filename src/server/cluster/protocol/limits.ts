import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The time for which an observer sees the same counter, by its own clock, before a lease is over. */
export const LEASE_MS = 10 * SECOND_MS;
/** The time since the begin of its last renewal for which a node trusts its own lease. */
export const TRUST_MS = 8 * SECOND_MS;
export const RENEW_EVERY_MS = 2 * SECOND_MS;
/** The delay between two looks at the log without anything new. */
export const READ_EVERY_MS = 500;
/** Positions that one read takes. */
export const READ_POSITIONS_MAX = 100;
/** The time without an answer after which a connection is given up, and what it carried is of unknown outcome. */
export const ANSWER_MAX_MS = 4 * SECOND_MS;
/** The time that a taker waits for the group's row before it ends the former owner's backends. */
export const TAKE_WAIT_MS = 2 * SECOND_MS;
/** The last positions that a node keeps, so that a log which has lost them gets them again. */
export const KEPT_POSITIONS = 1_000;
/** Bytes of what they contain: fewer positions are kept where they are large. */
export const KEPT_MAX_BYTES = 64 * 1024 * 1024;
/** Commits that wait for appends, and bytes of them; more are refused. */
export const QUEUE_MAX = 10_000;
export const QUEUE_MAX_BYTES = 512 * 1024 * 1024;
/** Bytes of commits from which on the next one goes with another append, and of positions from which on they come with another read. */
export const APPEND_BYTES = 4 * 1024 * 1024;
export const READ_BYTES = 8 * 1024 * 1024;
/** The difference between the rates of two clocks that leases bear. */
const CLOCK_RATES_MAX = 1.2;

if (TRUST_MS * CLOCK_RATES_MAX >= LEASE_MS) {
  throw new Error("A node must stop trusting its lease before anybody else takes it to be over");
}
if (RENEW_EVERY_MS * 2 > TRUST_MS) {
  throw new Error("A lease must outlive a renewal that fails");
}
