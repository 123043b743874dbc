import fs from "node:fs";
import { dirname } from "node:path";
import type { DirectorySync } from "../files/directory-sync.ts";

export type SyncFile = (descriptor: number, done: (error: Error | null) => void) => void;

/** Makes what was committed durable, beside the event loop. */
export interface WalSync {
  /** Syncs every frame written so far; the first call syncs the names of the files too. */
  run(done: (error: Error | null) => void): void;
  /** Length of the WAL in bytes. It shrinks only when SQLite starts the WAL over. */
  sizeBytes(): number;
  /** Not while a sync is under way. */
  close(): void;
}

/**
 * SQLite with synchronous=NORMAL does not sync the WAL at a commit; this does, off the thread. Every descriptor that it
 * needs is opened with the file, so that no commit finds none left, and kept, so that an error of an earlier background
 * write is seen by the next sync. Only the WAL is opened here, never the database file: closing a descriptor of that one would
 * drop SQLite's POSIX locks. Errors: a descriptor cannot be opened.
 */
export function createWalSync(options: {
  databasePath: string;
  newFileDescriptor: number | null;
  directories: DirectorySync;
  /** Default fs.fdatasync. */
  syncFile: SyncFile | undefined;
}): WalSync {
  const { databasePath, newFileDescriptor, directories, syncFile = fs.fdatasync } = options;
  // The file's own directory holds the names of the WAL and of a new database; the one above may be new as well.
  const ownDirectory = dirname(databasePath);
  const directoryAbove = dirname(ownDirectory);
  const descriptor = fs.openSync(`${databasePath}-wal`, "r+");
  try {
    directories.hold(ownDirectory);
    directories.hold(directoryAbove);
  } catch (error) {
    directories.release(ownDirectory);
    fs.closeSync(descriptor);
    throw error;
  }
  let isNewFileSynced = false;
  let isClosed = false;

  /** A database file that SQLite has not synced itself, and the names of it and of its WAL. */
  function syncNewFile(done: (error: Error | null) => void): void {
    if (newFileDescriptor === null) syncNames(done);
    else syncFile(newFileDescriptor, (error) => (error ? done(error) : syncNames(done)));
  }

  function syncNames(done: (error: Error | null) => void): void {
    directories.sync(ownDirectory, (error) => {
      if (error === null) directories.sync(directoryAbove, done);
      else done(error);
    });
  }

  return {
    run(done) {
      syncFile(descriptor, (error) => {
        if (error || isNewFileSynced) {
          done(error ?? null);
          return;
        }
        syncNewFile((newFileError) => {
          isNewFileSynced = newFileError === null;
          done(newFileError);
        });
      });
    },
    sizeBytes: () => (isClosed ? 0 : fs.fstatSync(descriptor).size),
    close() {
      if (isClosed) return;
      isClosed = true;
      fs.closeSync(descriptor);
      directories.release(ownDirectory);
      directories.release(directoryAbove);
    },
  };
}
