import { Database } from "bun:sqlite";
import { closeSync, constants, copyFileSync, existsSync, fdatasyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { syncDirectorySync } from "../../disk/directory-names.ts";
import { reasonOf } from "../../kernel/errors.ts";

/**
 * Copies a file before its tables are upgraded, as `NAME.db.vVERSION` beside it: an executable of before can go on with the copy.
 * The copy is complete and on disk when this returns. It replaces one of an earlier upgrade from the same version. Errors: those
 * of the disk; nothing has been changed then.
 */
export function copyBeforeUpgrade(sqlite: Database, version: number): void {
  const path = sqlite.filename;
  // A database in memory.
  if (!existsSync(path)) return;
  const copy = `${path}.v${version}`;
  const unfinished = `${copy}.new`;
  try {
    removeAll(unfinished);
    // Nobody else may write or move the WAL meanwhile.
    sqlite.run("BEGIN IMMEDIATE");
    try {
      copyFileSync(path, unfinished, constants.COPYFILE_FICLONE);
      if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${unfinished}-wal`, constants.COPYFILE_FICLONE);
    } finally {
      sqlite.run("ROLLBACK");
    }
    makeOneFile(unfinished);
    renameSync(unfinished, copy);
    syncDirectorySync(dirname(copy));
  } catch (cause) {
    removeAll(unfinished);
    const reason = reasonOf(cause);
    throw new Error(`${path} could not be copied to ${copy} before its upgrade: ${reason}`, { cause });
  }
}

/** Moves the WAL into the file and syncs it. */
function makeOneFile(path: string): void {
  const sqlite = new Database(path, { readwrite: true, create: false });
  try {
    sqlite.run("PRAGMA journal_mode = DELETE");
  } finally {
    sqlite.close();
  }
  const descriptor = openSync(path, "r+");
  try {
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function removeAll(path: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(path + suffix, { force: true });
}
