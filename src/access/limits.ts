import { SECOND_MS } from "../kernel/duration.ts";

/** A rule that has not answered by then denies; a hook before a write that has not, fails its request. Rooms' handlers have as long. */
export const RULE_TIMEOUT_MS = 5 * SECOND_MS;
