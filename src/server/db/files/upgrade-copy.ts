import type { Database } from "bun:sqlite";
import { closeSync, constants, copyFileSync, existsSync, fdatasyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { reasonOf } from "../../../kernel/errors.ts";
import { syncDirectorySync } from "../../disk/directory-names.ts";

/**
 * Copies a file before its tables are upgraded, as `NAME.db.vVERSION` beside it: an older executable can use the copy. The copy is
 * complete and on disk when this returns. It replaces one of an earlier upgrade from the same version. Errors: those of the disk;
 * nothing has been changed then.
 */
export function copyBeforeUpgrade(sqlite: Database, version: number): void {
  const path = sqlite.filename;
  // A database in memory has no file.
  if (!existsSync(path)) return;
  const copy = `${path}.v${version}`;
  const unfinished = `${copy}.new`;
  try {
    copyAlone(sqlite, unfinished);
    syncFile(unfinished);
    renameSync(unfinished, copy);
    syncDirectorySync(dirname(copy));
  } catch (cause) {
    rmSync(unfinished, { force: true });
    const reason = reasonOf(cause);
    throw new Error(`${path} could not be copied to ${copy} before its upgrade: ${reason}`, { cause });
  }
}

/**
 * Copies the file outside of WAL mode, in which it is complete by itself. Closing a descriptor of a file drops every POSIX lock of
 * the process on it: in WAL mode SQLite would lose the one that keeps other programs from removing the WAL when they close the file.
 */
function copyAlone(sqlite: Database, copy: string): void {
  const [mode] = sqlite.query<{ journal_mode: string }, []>("PRAGMA journal_mode").all();
  sqlite.run("PRAGMA journal_mode = DELETE");
  try {
    // Prevents writes by others during the copy.
    sqlite.run("BEGIN IMMEDIATE");
    try {
      copyFileSync(sqlite.filename, copy, constants.COPYFILE_FICLONE);
    } finally {
      sqlite.run("ROLLBACK");
    }
  } finally {
    sqlite.run(`PRAGMA journal_mode = ${mode?.journal_mode}`);
    // Takes the lock of that mode.
    sqlite.query("PRAGMA schema_version").get();
  }
}

function syncFile(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
