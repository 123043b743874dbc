import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { SECOND_MS } from "../../../kernel/time/duration.ts";

/**
 * A server makes it at its start. Nothing is ever written to it: only its locks matter, which the system releases with their process.
 */
const HOLD_FILE = "backup.lock";
/** The time that a backup waits for the moment in which the server looks. */
const LOOK_MAX_MS = 5 * SECOND_MS;

function open(directory: string, waitMs: number): Database {
  const sqlite = new Database(join(directory, HOLD_FILE), { create: true, readwrite: true });
  sqlite.run(`PRAGMA busy_timeout = ${waitMs}`);
  return sqlite;
}

/**
 * Asks the server of a data directory to remove no files of records until `release`: a backup copies the records before the files'
 * claims, so that a claim that went in between would be missing in the copy. Several may ask at once. Where nothing can be written,
 * no server removes anything either, nor where no server has been.
 */
export function holdRemovals(directory: string): { release(): void } {
  let sqlite: Database;
  if (!existsSync(join(directory, HOLD_FILE))) return { release() {} };
  try {
    sqlite = open(directory, LOOK_MAX_MS);
  } catch {
    return { release() {} };
  }
  sqlite.run("BEGIN");
  // A read takes the shared lock.
  sqlite.query("SELECT count(*) FROM sqlite_schema").get();
  return { release: () => sqlite.close() };
}

/** Whether a backup has asked for removals to wait. */
export class RemovalHold {
  readonly #directory: string;
  #sqlite: Database | null = null;

  constructor(directory: string) {
    this.#directory = directory;
    closeSync(openSync(join(directory, HOLD_FILE), "a"));
  }

  isHeld(): boolean {
    this.#sqlite ??= open(this.#directory, 0);
    try {
      this.#sqlite.run("BEGIN EXCLUSIVE");
      this.#sqlite.run("ROLLBACK");
      return false;
    } catch (cause) {
      if (cause instanceof SQLiteError && cause.code?.startsWith("SQLITE_BUSY") === true) return true;
      throw cause;
    }
  }

  close(): void {
    this.#sqlite?.close();
    this.#sqlite = null;
  }
}
