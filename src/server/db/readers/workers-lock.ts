import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { DirectoryInUse } from "../files/directory-lock.ts";

/** Nothing is ever written to it: only its locks matter, which the system releases with their process. */
const LOCK_FILE = "workers.lock";

/** Makes the file that workers lock. */
export function makeWorkersLock(directory: string): void {
  closeSync(openSync(join(directory, LOCK_FILE), "a"));
}

/** Locks the directory for a worker, until its process ends. Others may have the same lock. */
export function lockAsWorker(directory: string): Database {
  const sqlite = new Database(join(directory, LOCK_FILE), { readonly: true });
  sqlite.run("BEGIN");
  // A read takes the shared lock.
  sqlite.query("SELECT count(*) FROM sqlite_schema").get();
  return sqlite;
}

/** Waits until no worker of a former server has the directory open any more. Errors: `DirectoryInUse` after `timeoutMs`. */
export function awaitFormerWorkers(directory: string, timeoutMs: number): void {
  const path = join(directory, LOCK_FILE);
  if (!existsSync(path)) return;
  const sqlite = new Database(path, { readwrite: true });
  try {
    sqlite.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    sqlite.run("BEGIN EXCLUSIVE");
    sqlite.run("ROLLBACK");
  } catch (cause) {
    if (!(cause instanceof SQLiteError && cause.code?.startsWith("SQLITE_BUSY") === true)) throw cause;
    throw new DirectoryInUse(`Workers of a former server still use the data directory ${directory}`, { cause });
  } finally {
    sqlite.close();
  }
}
