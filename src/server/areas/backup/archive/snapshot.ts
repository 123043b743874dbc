import { closeSync, fdatasyncSync, openSync, writeFileSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { isEmptyFile } from "../../../db/index.ts";
import { LOCK_TIMEOUT_MS, STEP_PAGES } from "../limits.ts";

const SQLITE_FULL = 13;

/**
 * Makes a consistent copy of a database that another process may be writing to. The database is copied page by page, so
 * extensions of its tables are not needed and rowids are kept. Readers and writers continue; only the WAL cannot restart
 * meanwhile. The copy is synced in small parts: a single large sync at the end would delay those of the server.
 */
export async function snapshotDatabase(path: string, copyPath: string): Promise<void> {
  // SQLite would copy it as a sound database without tables, and hide that its data was lost.
  if (isEmptyFile(path)) return writeFileSync(copyPath, "");
  const source = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT_MS });
  let copy: number | null = null;
  try {
    // All steps read the snapshot of this moment.
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

/** Adds the name of SQLite's code to an error: node:sqlite reports the number only, and callers compare the name. */
function withCode(cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause) || cause.errcode !== SQLITE_FULL) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: "SQLITE_FULL" });
}
