import { statSync } from "node:fs";
import { hasAuditRows } from "../audit/file-audit.ts";
import { hasWal, openUnchanged } from "../open-unchanged.ts";
import { hasOutboxRows } from "./rows.ts";

/**
 * Whether the outbox of a file, or its table of audit entries, may have rows, without a lock and without changing anything, so
 * that the server may use the file meanwhile. A file with a WAL counts as having rows: either the server has it open, and knows its outbox, or a crash left
 * the WAL, and only the server may recover it ([DB163]). So does a file that cannot be read, as one that the server is writing.
 */
export function mayHaveOutboxRows(path: string): boolean {
  if (hasWal(path)) return true;
  try {
    using sqlite = openUnchanged(path);
    return hasOutboxRows(sqlite) || hasAuditRows(sqlite);
  } catch {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  }
}
