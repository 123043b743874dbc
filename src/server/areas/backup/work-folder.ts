import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { lockDirectory } from "../../db/index.ts";
import { RESTORE_FOLDER } from "./layout.ts";
import { BackupError } from "./types.ts";

/** A folder for temporary files, locked while it is used. */
export type WorkFolder = ReturnType<typeof claimWorkFolder>;

/** Creates and locks a work folder, after removing the remains of a killed process. Errors: the folder is in use. */
export function claimWorkFolder(path: string, { work = "backup" } = {}) {
  sweepWorkFolder(path);
  if (existsSync(path)) throw new BackupError(`Another ${work} is running in ${path}`);
  mkdirSync(path, { mode: 0o700 });
  const lock = lockDirectory(path);
  return {
    pathOf: (name: string): string => join(path, name),
    /** Removes the folder with its contents. */
    remove(): void {
      lock.release();
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Removes a work folder unless it is in use. */
export function sweepWorkFolder(path: string): void {
  if (!existsSync(path)) return;
  try {
    lockDirectory(path).release();
  } catch {
    return;
  }
  rmSync(path, { recursive: true, force: true });
}

/** Opens a database for the duration of one backup or restore. Its folder is removed afterwards, so it is never synced. */
export function openScratch(path: string, schema: string): Database {
  const sqlite = new Database(path, { create: true, readwrite: true });
  sqlite.run("PRAGMA journal_mode = OFF");
  sqlite.run("PRAGMA synchronous = OFF");
  sqlite.run(schema);
  return sqlite;
}

/** Checks that the data directory is complete. Errors: a restore into it was interrupted. */
export function requireWhole(dataDirectory: string): void {
  if (!existsSync(join(dataDirectory, RESTORE_FOLDER))) return;
  throw new BackupError(
    `A restore into ${dataDirectory} was interrupted: run "platform restore" again, or use another directory`,
  );
}
