import { close, closeSync, fsync, fsyncSync, openSync } from "node:fs";
import { promisify } from "node:util";
import { codeOf } from "../../kernel/errors.ts";

const syncAsync = promisify(fsync);
const closeAsync = promisify(close);

/**
 * Opens a directory, so that the names in it can be synced. null where that is impossible: on Windows, which has no such
 * descriptors (NTFS journals names by itself), and in a directory that this user may write to and not list.
 */
export function openDirectory(path: string): number | null {
  if (process.platform === "win32") return null;
  try {
    return openSync(path, "r");
  } catch (cause) {
    if (codeOf(cause) === "EACCES") return null;
    throw cause;
  }
}

/** Makes the names in a directory durable, after files were created, renamed or removed there. */
export async function syncDirectory(path: string): Promise<void> {
  const descriptor = openDirectory(path);
  if (descriptor === null) return;
  try {
    await syncAsync(descriptor);
  } finally {
    await closeAsync(descriptor);
  }
}

/**
 * Makes the names in a directory durable, as `syncDirectory` does, but blocks: for a caller that has nothing else to do meanwhile.
 */
export function syncDirectorySync(path: string): void {
  const descriptor = openDirectory(path);
  if (descriptor === null) return;
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
