import { Database, SQLiteError } from "bun:sqlite";
import { type BigIntStats, statSync } from "node:fs";
import { join } from "node:path";
import { openError } from "../writer/sqlite-errors.ts";

const LOCK_FILE = "platform.lock";

export class DirectoryInUse extends Error {}

/**
 * Locks a data directory, which must exist, against other processes. Errors: `DirectoryInUse`, another process has the lock.
 */
export function lockDirectory(path: string): DirectoryLock {
  return new DirectoryLock(path);
}

/**
 * A lock on a directory: an exclusive SQLite transaction on a file of its own in it, which the system releases with the process,
 * however that ends. The lock is on the file and not on its name: removing or moving the file can let another process in, so the
 * holder checks its `place` periodically.
 */
export class DirectoryLock {
  readonly #directory: string;
  readonly #directoryId: string | null;
  #sqlite: Database;
  #fileId: string | null;

  constructor(directory: string) {
    this.#directory = directory;
    this.#sqlite = locked(directory);
    this.#directoryId = idOf(directory);
    this.#fileId = idOf(this.#file);
  }

  get #file(): string {
    return join(this.#directory, LOCK_FILE);
  }

  /**
   * Returns where the lock is. `held`: at its path; a lock file that was removed is made and locked again. `away`: the path leads
   * to another directory, or to none. `taken`: the lock file was removed, and another process has locked a new one.
   */
  place(): "held" | "away" | "taken" {
    if (idOf(this.#file) === this.#fileId) return "held";
    if (idOf(this.#directory) !== this.#directoryId) return "away";
    try {
      const next = locked(this.#directory);
      this.#sqlite.close();
      this.#sqlite = next;
      this.#fileId = idOf(this.#file);
      return "held";
    } catch (cause) {
      return cause instanceof DirectoryInUse ? "taken" : "away";
    }
  }

  release(): void {
    this.#sqlite.close();
  }
}

function locked(directory: string): Database {
  const path = join(directory, LOCK_FILE);
  let sqlite: Database | null = null;
  try {
    sqlite = new Database(path, { create: true, readwrite: true });
    sqlite.run("PRAGMA busy_timeout = 0");
    sqlite.run("BEGIN EXCLUSIVE");
    return sqlite;
  } catch (error) {
    sqlite?.close();
    if (error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true) {
      throw new DirectoryInUse(`The data directory ${directory} is in use by another process`, { cause: error });
    }
    throw openError(path, error);
  }
}

/** Returns an identity of the file at a path; null when there is none, or it cannot be seen. */
function idOf(path: string): string | null {
  try {
    const { dev, ino }: BigIntStats = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}
