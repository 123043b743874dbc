import { statSync } from "node:fs";
import { JOURNAL_MAX_BYTES } from "./limits.ts";

/** Whether the write-ahead log of a database is larger than a write leaves it. */
export const hasLargeJournal = (path: string): boolean =>
  (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > JOURNAL_MAX_BYTES;
