import { type FileHandle, open } from "node:fs/promises";
import { Writable } from "node:stream";
import { SYNC_BYTES } from "../limits.ts";

const OWNER_ONLY = 0o600;

/**
 * A new file that is synced in small parts and on disk when the stream has finished: a single large sync at the end would
 * delay the small ones of the server. Errors: the file exists.
 */
export function createSyncedFile(path: string): Writable {
  let handle: FileHandle | null = null;
  let unsyncedBytes = 0;

  const write = async (chunk: Uint8Array): Promise<void> => {
    handle ??= await open(path, "wx", OWNER_ONLY);
    await handle.writeFile(chunk);
    unsyncedBytes += chunk.byteLength;
    if (unsyncedBytes < SYNC_BYTES) return;
    unsyncedBytes = 0;
    await handle.datasync();
  };
  const end = async (): Promise<void> => {
    await handle?.sync();
  };
  return new Writable({
    write: (chunk: Uint8Array, _encoding, done) => void write(chunk).then(() => done(), done),
    final: (done) => void end().then(() => done(), done),
    destroy: (cause, done) => void Promise.resolve(handle?.close()).then(() => done(cause), done),
  });
}
