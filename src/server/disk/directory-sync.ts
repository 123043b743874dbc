import fs from "node:fs";
import { openDirectory } from "./directory-names.ts";

interface Held {
  /** Descriptor of the directory; null: the system cannot sync directories, or does not permit opening this one. */
  descriptor: number | null;
  count: number;
}

/** Makes directory entries durable. */
export type DirectorySync = ReturnType<typeof createDirectorySync>;

/** Creates a cache of descriptors, bounded by the number of directories of open files. */
export function createDirectorySync() {
  const held = new Map<string, Held>();
  return {
    /** Keeps a descriptor of the directory open until `release`, for `sync`. Errors: it cannot be opened (for example EMFILE). */
    hold(path: string): void {
      const known = held.get(path);
      if (known === undefined) held.set(path, { descriptor: openDirectory(path), count: 1 });
      else known.count += 1;
    },
    release(path: string): void {
      const known = held.get(path);
      if (known === undefined) return;
      known.count -= 1;
      if (known.count > 0) return;
      held.delete(path);
      if (known.descriptor !== null) fs.closeSync(known.descriptor);
    },
    sync(path: string, done: (error: Error | null) => void): void {
      const descriptor = held.get(path)?.descriptor ?? null;
      if (descriptor === null) done(null);
      else fs.fsync(descriptor, (error) => done(error ?? null));
    },
  };
}
