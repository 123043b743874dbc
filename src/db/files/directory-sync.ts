import fs from "node:fs";
import { openDirectory } from "../../disk/directory-names.ts";

/** Makes the names in directories durable. */
export interface DirectorySync {
  /** Until `release`, `sync` of this directory needs no descriptor of its own. Errors: it cannot be opened (EMFILE, say). */
  hold(path: string): void;
  release(path: string): void;
  sync(path: string, done: (error: Error | null) => void): void;
}

interface Held {
  /** null: the system has no directories to sync, or gives no right to open this one. */
  descriptor: number | null;
  count: number;
}

/** Bounded by the directories of the files that are open. */
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
