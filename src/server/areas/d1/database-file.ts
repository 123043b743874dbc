import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import type { Ids } from "../../../kernel/ids.ts";
import { assertOpenable, markFile } from "../../db/files/file-identity.ts";
import { openError } from "../../db/files/sqlite-errors.ts";
import { BUSY_TIMEOUT_MS, LOG_KEPT_BYTES } from "./limits.ts";

/**
 * Opens the file, or creates it, in WAL mode, so that reads and a write can run concurrently. The WAL and its index exist as long
 * as this connection, so that processes can begin to read even when the disk is full. Errors: one that names the file and the problem.
 */
export function keepDatabaseFile(path: string, ids: Ids): Database {
  let database: Database | null = null;
  try {
    if (existsSync(path)) assertOpenable(path);
    database = new Database(path, { create: true });
    database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    markFile(database, ids);
    database.run("PRAGMA journal_mode = WAL");
    database.query("SELECT count(*) FROM sqlite_schema").get();
    return database;
  } catch (error) {
    database?.close();
    throw openError(path, error);
  }
}

/** Returns the bytes of a database's write-ahead log; 0 without one. */
export const logBytes = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;

/** Whether the write-ahead log is larger than a completed write leaves it. */
export const hasLargeLog = (path: string): boolean => logBytes(path) > LOG_KEPT_BYTES;
