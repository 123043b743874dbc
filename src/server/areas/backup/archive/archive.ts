import { type FileHandle, open } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { createTarPacker } from "modern-tar";
import { CHUNK_BYTES, SYNC_BYTES } from "../limits.ts";
import { BackupError, type FileFacts } from "../types.ts";

/** Version of the archive format, incremented with every incompatible change. */
export const ARCHIVE_VERSION = 1;
/** Names of the first and the last entry of an archive. */
export const HEADER_ENTRY = "backup.json";
export const MANIFEST_ENTRY = "manifest.ndjson";
const OWNER_ONLY = 0o600;

/** Writes a tar compressed with Zstandard as a stream: only a few chunks are in memory. */
export type ArchiveWriter = ReturnType<typeof createArchive>;

/** Creates an archive. `path` must not exist. An abort of `signal` stops the writing. */
export function createArchive(path: string, { time, signal }: { time: Date; signal: AbortSignal }) {
  const { readable, controller } = createTarPacker();
  const compressor = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  // The stream is the same standard type, declared by two libraries.
  const source = Readable.fromWeb(readable as Parameters<typeof Readable.fromWeb>[0]);
  let failure: { cause: unknown } | null = null;
  const written = pipeline(source, compressor, createSyncedFile(path), { signal }).catch((cause: unknown) => {
    failure ??= { cause };
  });

  /** A failed output explains more than the failed entry that follows from it. */
  const explained = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (cause) {
      throw failure?.cause ?? cause;
    }
  };
  const add = async (name: string, size: number, chunks: AsyncIterable<Uint8Array>): Promise<FileFacts> => {
    const hash = new Bun.CryptoHasher("sha256");
    const entry = controller.add({ name, size, mode: OWNER_ONLY, mtime: time, type: "file" }).getWriter();
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      hash.update(chunk);
      await entry.write(chunk);
    }
    await entry.close();
    return { path: name, size, sha256: hash.digest("hex") };
  };

  return {
    /** Adds the current content of `source`. Errors: those of opening it, before anything has been written. */
    async addFile(name: string, file: string): Promise<FileFacts> {
      const handle = await open(file, "r");
      try {
        const { size } = await handle.stat();
        return await explained(add(name, size, chunksOf(handle, size, name)));
      } finally {
        await handle.close();
      }
    },
    addText(name: string, text: string): Promise<FileFacts> {
      const bytes = Buffer.from(text);
      return explained(add(name, bytes.byteLength, oneChunk(bytes)));
    },
    /** Completes the archive; resolves when it is on disk. */
    async finish(): Promise<void> {
      controller.finalize();
      await written;
      if (failure !== null) throw failure.cause;
    },
    /** Stops writing; the incomplete file remains. */
    async abort(): Promise<void> {
      controller.error(new BackupError("The backup was cancelled"));
      await written;
    },
  };
}

/** Yields exactly `size` bytes: what is appended meanwhile is not included. */
async function* chunksOf(
  handle: Awaited<ReturnType<typeof open>>,
  size: number,
  name: string,
): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < size; ) {
    // A new buffer each time, as the archive holds it until it has been compressed.
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, size - position));
    const { bytesRead } = await handle.read(chunk, 0, chunk.byteLength, position);
    if (bytesRead === 0) throw new BackupError(`${name} became shorter while it was read`);
    position += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}

/**
 * Creates a file that is synced in small parts, and is on disk when the stream has finished: a single large sync at the end
 * would delay the small ones of the server. Errors: the file exists.
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
