import fs from "node:fs";
import { dirname } from "node:path";

export type SyncFile = (descriptor: number, done: (error: Error | null) => void) => void;

/** Makes what was committed durable, beside the event loop. */
export interface WalSync {
  /** Syncs every frame written so far; the first call syncs the names of the files too. */
  run(done: (error: Error | null) => void): void;
  /** Length of the WAL in bytes; 0 before the first sync. It shrinks only when SQLite starts the WAL over. */
  sizeBytes(): number;
  /** Not while a sync is under way. */
  close(): void;
}

/**
 * SQLite with synchronous=NORMAL does not sync the WAL at a commit; this does, off the thread. The descriptor is kept,
 * so that an error of an earlier background write is seen by the next sync. Only the WAL is opened here, never the
 * database file: closing a descriptor of that one would drop SQLite's POSIX locks.
 */
export function createWalSync(
  databasePath: string,
  newFileDescriptor: number | null,
  syncFile: SyncFile = fs.fdatasync,
): WalSync {
  let descriptor: number | null = null;
  let isNewFileSynced = false;

  /** A database file that SQLite has not synced itself, and the names of it and of its WAL. */
  function syncNewFile(done: (error: Error | null) => void): void {
    if (newFileDescriptor === null) syncNames(done);
    else syncFile(newFileDescriptor, (error) => (error ? done(error) : syncNames(done)));
  }

  function syncNames(done: (error: Error | null) => void): void {
    // The file's own directory holds the names of the WAL and of a new database; the one above may be new as well.
    const directory = dirname(databasePath);
    syncDirectory(directory, (error) => {
      if (error === null) syncDirectory(dirname(directory), done);
      else done(error);
    });
  }

  return {
    run(done) {
      try {
        descriptor ??= fs.openSync(`${databasePath}-wal`, "r+");
      } catch (error) {
        // fs throws Error only.
        setImmediate(() => done(error as Error));
        return;
      }
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
    sizeBytes: () => (descriptor === null ? 0 : fs.fstatSync(descriptor).size),
    close() {
      if (descriptor !== null) fs.closeSync(descriptor);
      descriptor = null;
    },
  };
}

function syncDirectory(path: string, done: (error: Error | null) => void): void {
  // Windows has no directory handles to sync: NTFS journals names by itself.
  if (process.platform === "win32") {
    done(null);
    return;
  }
  fs.open(path, "r", (openError, descriptor) => {
    if (openError) return done(openError.code === "EACCES" ? null : openError);
    fs.fsync(descriptor, (error) => {
      fs.close(descriptor, () => done(error ?? null));
    });
  });
}
