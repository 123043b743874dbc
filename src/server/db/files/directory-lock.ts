import { Database, SQLiteError } from "bun:sqlite";
import { join } from "node:path";
import { openError } from "./sqlite-errors.ts";

const LOCK_FILE = "platform.lock";

export class DirectoryInUse extends Error {}

export interface DirectoryLock {
  release(): void;
}

/**
 * Locks a data directory, which must exist, against other processes. The lock is an exclusive SQLite transaction on a
 * separate file. The system releases it when the process ends for any reason. Errors: `DirectoryInUse`, another process has
 * the lock.
 */
export function lockDirectory(path: string): DirectoryLock {
  const lockPath = join(path, LOCK_FILE);
  let sqlite: Database | null = null;
  try {
    sqlite = new Database(lockPath, { create: true, readwrite: true });
    sqlite.run("PRAGMA busy_timeout = 0");
    sqlite.run("BEGIN EXCLUSIVE");
  } catch (error) {
    sqlite?.close();
    if (error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true) {
      throw new DirectoryInUse(`The data directory ${path} is in use by another process`, { cause: error });
    }
    throw openError(lockPath, error);
  }
  const held = sqlite;
  return { release: () => held.close() };
}
