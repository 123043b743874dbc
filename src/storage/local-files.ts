import {
  accessSync,
  close,
  closeSync,
  constants,
  fdatasync,
  fsync,
  mkdirSync,
  open,
  openSync,
  rename,
  unlink,
  write,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { insufficientStorage, isDiskFull } from "../kernel/errors.ts";
import { WRITE_BUFFER_BYTES } from "./limits.ts";
import { createSharedSync } from "./shared-sync.ts";
import type { FileStore, IncomingFile } from "./types.ts";

const openFile = promisify(open);
const closeFile = promisify(close);
const syncBytes = promisify(fdatasync);
const syncDirectory = promisify(fsync);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);

/**
 * Whole files in one directory, fanned out by the last two characters of their random ids. A file is written under
 * `incoming/`, renamed to its place, and both are synced before `finish` resolves; only then may a record name it.
 */
export function createLocalFiles(directory: string): FileStore {
  const incoming = join(directory, "incoming");
  mkdirSync(incoming, { recursive: true });
  accessSync(incoming, constants.W_OK);
  const places = new Map<string, { path: string; descriptor: number; sync: () => Promise<void> }>();
  const syncRoot = createSharedSync(() => withDescriptor(directory, syncDirectory));
  const pathOf = (fileId: string): string => join(directory, fileId.slice(-2), fileId);

  /** At most 256 of them; their descriptors stay open for the syncs. */
  const place = async (fileId: string) => {
    const name = fileId.slice(-2);
    const known = places.get(name);
    if (known !== undefined) return known;
    const path = join(directory, name);
    const isNew = mkdirSync(path, { recursive: true }) !== undefined;
    const descriptor = openSync(path, "r");
    const made = { path, descriptor, sync: createSharedSync(() => syncDirectory(descriptor)) };
    places.set(name, made);
    if (isNew) await syncRoot();
    return made;
  };

  return {
    create: (fileId) =>
      createIncoming(join(incoming, fileId), async (from) => {
        const { path, sync } = await place(fileId);
        await renameFile(from, join(path, fileId));
        await sync();
      }),
    async body(fileId, { start, end, size }) {
      const file = Bun.file(pathOf(fileId));
      return start === 0 && end === size ? file : file.slice(start, end);
    },
    blob: async (fileId) => Bun.file(pathOf(fileId)),
    async remove(fileId) {
      await removeFile(pathOf(fileId));
      await removeFile(join(incoming, fileId));
    },
    async *ids() {
      for (const name of await readdir(directory)) {
        // One fan-out directory at a time bounds what is held.
        if (name !== "incoming" && name.length !== 2) continue;
        yield (await readdir(join(directory, name))).map((fileId) => ({ fileId, writtenAt: null }));
      }
    },
    async close() {
      for (const { descriptor } of places.values()) closeSync(descriptor);
      places.clear();
    },
  };
}

/** Also for one that is not there. */
export async function removeFile(path: string): Promise<void> {
  try {
    await unlinkFile(path);
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause;
  }
}

async function createIncoming(path: string, settle: (path: string) => Promise<void>): Promise<IncomingFile> {
  const descriptor = await guarded(openFile(path, "wx", 0o600));
  // One buffer for the whole file: joining chunks anew each time would leave garbage faster than it is collected.
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
      // The bytes and the name are synced side by side: until both are, no record names the file, so nobody reads it.
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

/** Resolves to how many bytes went in, which may be fewer than asked for. */
function writeBytes(descriptor: number, bytes: Uint8Array, offset: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, offset, bytes.byteLength - offset, null, (cause, written) => {
      if (cause !== null) reject(cause);
      else resolve(written);
    });
  });
}

async function withDescriptor(path: string, use: (descriptor: number) => Promise<void>): Promise<void> {
  const descriptor = await openFile(path, "r");
  try {
    await use(descriptor);
  } finally {
    await closeFile(descriptor);
  }
}

async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw isDiskFull(cause) ? insufficientStorage(cause) : cause;
  }
}

const codeOf = (cause: unknown): unknown => (cause instanceof Error && "code" in cause ? cause.code : null);
