import fs from "node:fs";
import { dirname } from "node:path";
import type { DirectorySync } from "../../disk/directory-sync.ts";
import { WAL_FRAME_BYTES } from "../limits.ts";
import type { ReadTransaction } from "../reads/read-transaction.ts";
import type { StatementCache } from "../reads/statement-cache.ts";
import type { Durable } from "./durability.ts";

export type SyncFile = (descriptor: number, done: (error: Error | null) => void) => void;

/** Makes committed transactions durable without blocking the event loop. */
export type WalSync = Omit<ReturnType<typeof createWalSync>, "run"> & { run: Durable };

/**
 * Creates the sync of a WAL, off the main thread, as SQLite with synchronous=NORMAL does not sync it at a commit. All descriptors
 * that it needs are opened with the file, so that a commit cannot fail for lack of descriptors. They stay open, so that the next
 * sync reports an error of an earlier background write. Only the WAL is opened here, never the database file: closing a descriptor
 * of the database file would drop SQLite's POSIX locks. Errors: a descriptor cannot be opened.
 */
export function createWalSync(options: {
  databasePath: string;
  newFileDescriptor: number | null;
  directories: DirectorySync;
  /** Syncs a descriptor. Default fs.fdatasync. */
  syncFile: SyncFile | undefined;
}) {
  const { databasePath, newFileDescriptor, directories, syncFile = fs.fdatasync } = options;
  // The file's directory has the entries of the WAL and of a new database. Its parent directory is synced because the directory may be new.
  const ownDirectory = dirname(databasePath);
  const directoryAbove = dirname(ownDirectory);
  /** The descriptor of the WAL. */
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

  /** Syncs a database file that SQLite has not synced, and the directory entries of it and of its WAL. */
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
    descriptor,
    /** Syncs every frame written so far. The first call also syncs the directory entries of the files. */
    run(done: (error: Error | null) => void): void {
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
    /** Closes the descriptors. Must not be called during a sync. */
    close(): void {
      if (isClosed) return;
      isClosed = true;
      fs.closeSync(descriptor);
      directories.release(ownDirectory);
      directories.release(directoryAbove);
    },
  };
}

/** Contents of a WAL, whose file is longer after a restart. */
export interface WalState {
  frames: number;
  bytes: number;
  /** Whether checkpoints have moved all of it, so that the next commit restarts it unless a reader needs it. */
  isMoved: boolean;
}

/** Returns a function that reads the state of the WAL. SQLite answers in a microsecond, but not inside a transaction. */
export function createWalState(statements: StatementCache, reads: ReadTransaction): () => WalState {
  const statement = statements.prepare<{ log: number; checkpointed: number }>("PRAGMA wal_checkpoint(NOOP)");
  return () => {
    reads.end();
    const found = statement.get();
    const frames = Math.max(0, found?.log ?? 0);
    return { frames, bytes: frames * WAL_FRAME_BYTES, isMoved: frames > 0 && found?.checkpointed === frames };
  };
}
