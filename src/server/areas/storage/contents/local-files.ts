import { accessSync, close, constants, fdatasync, mkdirSync, open, rename, statSync, unlink, write } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { AppError, codeOf, insufficientStorage, isDiskFull } from "../../../../kernel/errors.ts";
import { syncDirectory } from "../../../disk/directory-names.ts";
import { WRITE_BUFFER_BYTES } from "../limits.ts";
import type { FileStore, IncomingFile } from "../model/types.ts";

const openFile = promisify(open);
const closeFile = promisify(close);
const syncBytes = promisify(fdatasync);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);

/** Syncs a directory, which makes the names in it durable. */
export type SyncDirectory = (path: string) => Promise<void>;

/**
 * Stores whole files in one directory, in folders named by the last two characters of their ids. A file is written in
 * `incoming/` and renamed to its place. `finish` resolves when its bytes, its name and the names of the folders above it
 * are durable; only then may a record name it. `onStored` is called before.
 */
export function createLocalFiles(
  directory: string,
  sync: SyncDirectory = syncDirectory,
  onStored: (path: string) => void = () => {},
): FileStore {
  const incoming = join(directory, "incoming");
  mkdirSync(incoming, { recursive: true });
  accessSync(incoming, constants.W_OK);
  const places = new Map<string, Place>();
  const syncRoot = createSharedSync(() => sync(directory));
  // `storage/objects` and `storage` may be new: created by this start, or by one that crashed before it synced their names.
  const syncParents = once(async () => {
    await sync(dirname(directory));
    await sync(dirname(dirname(directory)));
  });
  const reads = createLocalReads(directory);

  const placeOf = (fileId: string): Place => {
    const name = fileId.slice(-2);
    const known = places.get(name);
    if (known !== undefined) return known;
    const path = join(directory, name);
    const place: Place = {
      path,
      // Runs for an existing folder too: a crash may have come before its name was synced.
      prepare: once(async () => {
        await mkdir(path, { recursive: true });
        await syncParents();
        await syncRoot();
      }),
      sync: createSharedSync(() => sync(path)),
    };
    places.set(name, place);
    return place;
  };

  return {
    create: (fileId) =>
      createIncoming(join(incoming, fileId), async (from) => {
        const { path, prepare, sync } = placeOf(fileId);
        await prepare();
        await renameFile(from, join(path, fileId));
        await sync();
        onStored(join(path, fileId));
      }),
    ...reads,
    async remove(fileId) {
      await removeFile(reads.localPath(fileId));
      await removeFile(join(incoming, fileId));
    },
    async *ids() {
      for (const name of await readdir(directory)) {
        // One folder at a time bounds the memory that this takes.
        if (name !== "incoming" && name.length !== 2) continue;
        const names = await readdir(join(directory, name));
        yield names.filter(isFileId).map((fileId) => ({ fileId, writtenAt: null }));
      }
    },
  };
}

/** Returns the reads of the files in a directory: see `createLocalFiles`. */
export function createLocalReads(directory: string) {
  const pathOf = (fileId: string): string => join(directory, fileId.slice(-2), fileId);
  /** Checks the file now: Bun would open it only after the headers have been sent. Errors: 503. */
  const wholeFile = (fileId: string, sizeBytes: number): Blob => {
    const path = pathOf(fileId);
    if (statSync(path, { throwIfNoEntry: false })?.size !== sizeBytes) throw bytesMissing();
    return Bun.file(path);
  };
  return {
    async body(fileId, { start, end, size }) {
      const file = wholeFile(fileId, size);
      return start === 0 && end === size ? file : file.slice(start, end);
    },
    localPath: pathOf,
    blob: async (fileId, sizeBytes) => wholeFile(fileId, sizeBytes),
  } satisfies Pick<FileStore, "body" | "localPath" | "blob">;
}

/** A folder of files. At most 256 exist. */
interface Place {
  path: string;
  /** Resolves when the folder exists and its name is durable. Every file put there awaits this. */
  prepare: () => Promise<void>;
  /** Makes the names of the folder's files durable. */
  sync: () => Promise<void>;
}

/** Runs `work` once for all callers. After a failure the next call runs it again. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => {
    done ??= work().catch((cause: unknown) => {
      done = null;
      throw cause;
    });
    return done;
  };
}

/** Removes a file; does nothing when there is none. */
export async function removeFile(path: string): Promise<void> {
  try {
    await unlinkFile(path);
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause;
  }
}

async function createIncoming(path: string, settle: (path: string) => Promise<void>): Promise<IncomingFile> {
  const descriptor = await guarded(openFile(path, "wx", 0o600));
  // One buffer for the whole file: a new one per few chunks would create garbage faster than it is collected.
  let buffer: Buffer | null = null;
  let waitingBytes = 0;
  let isOpen = true;

  const writeAll = async (bytes: Uint8Array): Promise<void> => {
    for (let offset = 0; offset < bytes.byteLength; ) {
      offset += await guarded(writeBytes(descriptor, bytes, offset));
    }
  };
  const flush = async (): Promise<void> => {
    if (buffer === null || waitingBytes === 0) return;
    const bytes = buffer.subarray(0, waitingBytes);
    waitingBytes = 0;
    await writeAll(bytes);
  };
  const end = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await closeFile(descriptor);
  };
  return {
    async write(chunk) {
      if (waitingBytes + chunk.byteLength > WRITE_BUFFER_BYTES) await flush();
      if (chunk.byteLength >= WRITE_BUFFER_BYTES) return writeAll(chunk);
      buffer ??= Buffer.allocUnsafe(WRITE_BUFFER_BYTES);
      buffer.set(chunk, waitingBytes);
      waitingBytes += chunk.byteLength;
    },
    async finish() {
      await flush();
      buffer = null;
      // Bytes and name are synced at the same time: no record names the file before both are durable.
      const settled = await Promise.allSettled([guarded(syncBytes(descriptor)), guarded(settle(path))]);
      for (const outcome of settled) if (outcome.status === "rejected") throw outcome.reason;
      await end();
    },
    async discard() {
      await end();
      await removeFile(path);
    },
  };
}

/** Resolves to the number of bytes written, which may be fewer than given. */
function writeBytes(descriptor: number, bytes: Uint8Array, offset: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, offset, bytes.byteLength - offset, null, (cause, written) => {
      if (cause !== null) reject(cause);
      else resolve(written);
    });
  });
}

async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw isDiskFull(cause) ? insufficientStorage(cause) : cause;
  }
}

/**
 * Shares disk syncs among concurrent callers, one at a time. Callers that arrive while a sync runs share the next: only a
 * sync that begins after the call is sure to cover what the caller has done.
 */
function createSharedSync(sync: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  const start = (): Promise<void> => {
    const current = sync().finally(() => {
      if (running === current) running = null;
    });
    running = current;
    return current;
  };
  return () => {
    if (running === null) return start();
    next ??= running
      .catch(() => {})
      .then(() => {
        next = null;
        return start();
      });
    return next;
  };
}

/**
 * Returns the error for a record whose bytes are missing, wholly or partly: a disk has lost them, or somebody has removed
 * them.
 */
export const bytesMissing = (): AppError => new AppError(503, "The bytes of this file are missing on the server");

/** Whether a name has the form of a file id. Other files in the server's folders are not its own, and no sweep removes them. */
export const isFileId = (name: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);
