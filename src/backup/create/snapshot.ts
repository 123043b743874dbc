import { closeSync, fdatasyncSync, openSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { LOCK_TIMEOUT_MS, STEP_PAGES } from "../limits.ts";

const SQLITE_FULL = 13;

/**
 * A consistent copy of a database that another process may be writing to, page by page: extensions of its tables are not
 * needed, and rowids stay. Readers and writers go on; only the WAL cannot start over meanwhile. What has been copied goes
 * to the disk little by little: one large sync at the end would keep the server's own waiting.
 */
export async function snapshotDatabase(path: string, copyPath: string): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT_MS });
  let copy: number | null = null;
  try {
    // All steps read what was there at this moment.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_schema").get();
    const progress = () => {
      copy ??= openSync(copyPath, "r+");
      fdatasyncSync(copy);
    };
    await backup(source, copyPath, { rate: STEP_PAGES, progress });
  } catch (cause) {
    throw withCode(cause);
  } finally {
    if (copy !== null) closeSync(copy);
    source.close();
  }
}

/** node:sqlite has SQLite's code as a number, where everybody else has a name. */
function withCode(cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause) || cause.errcode !== SQLITE_FULL) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: "SQLITE_FULL" });
}
