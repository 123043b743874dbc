import { constants, Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { hasAuditRows } from "../audit/file-audit.ts";
import { hasOutboxRows } from "./rows.ts";

/**
 * Whether the outbox of a file, or its table of audit entries, may have rows, without a lock and without changing anything, so
 * that the server may use the file meanwhile. A file with a WAL counts as having rows: either the server has it open, and knows its outbox, or a crash left
 * the WAL, and only the server may recover it ([DB163]). So does a file that cannot be read, as one that the server is writing.
 */
export function mayHaveOutboxRows(path: string): boolean {
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return true;
  try {
    using sqlite = new Database(
      `${pathToFileURL(path).href}?immutable=1`,
      constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI,
    );
    return hasOutboxRows(sqlite) || hasAuditRows(sqlite);
  } catch {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  }
}
