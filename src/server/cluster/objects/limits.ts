import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The interval in which the owner brings what the log has to the object store. */
export const ARCHIVE_EVERY_MS = 2 * SECOND_MS;
