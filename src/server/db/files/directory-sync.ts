import fs from "node:fs";
import { openDirectory } from "../../disk/directory-names.ts";

/** Makes directory entries durable. */
export interface DirectorySync {
  /** Keeps a descriptor of the directory open until `release`, for `sync`. Errors: it cannot be opened (for example EMFILE). */
  hold(path: string): void;
  release(path: string): void;
  sync(path: string, done: (error: Error | null) => void): void;
}

interface Held {
  /** Descriptor of the directory; null: the system cannot sync directories, or does not permit opening this one. */
  descriptor: number | null;
  count: number;
}

/** Creates a cache of descriptors, bounded by the number of directories of open files. */
export function createDirectorySync(): DirectorySync {
  const held = new Map<string, Held>();
  return {
    hold(path) {
      const known = held.get(path);
      if (known === undefined) held.set(path, { descriptor: openDirectory(path), count: 1 });
      else known.count += 1;
    },
    release(path) {
      const known = held.get(path);
      if (known === undefined) return;
      known.count -= 1;
      if (known.count > 0) return;
      held.delete(path);
      if (known.descriptor !== null) fs.closeSync(known.descriptor);
    },
    sync(path, done) {
      const descriptor = held.get(path)?.descriptor ?? null;
      if (descriptor === null) done(null);
      else fs.fsync(descriptor, (error) => done(error ?? null));
    },
  };
}
