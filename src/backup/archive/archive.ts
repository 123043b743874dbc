import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { createTarPacker } from "modern-tar";
import { CHUNK_BYTES } from "../limits.ts";
import { BackupError, type FileFacts } from "../types.ts";
import { createSyncedFile } from "./synced-file.ts";

/** What a later version cannot read any more gets the next number. */
export const ARCHIVE_VERSION = 1;
/** The first and the last entry of an archive. */
export const HEADER_ENTRY = "backup.json";
export const MANIFEST_ENTRY = "manifest.ndjson";
const OWNER_ONLY = 0o600;

/** A tar compressed with Zstandard, written as it comes: no more than a few chunks are in memory. */
export interface ArchiveWriter {
  /** Adds the file that is at `source` now. Errors: whatever opening it gives, before anything has been written. */
  addFile(path: string, source: string): Promise<FileFacts>;
  addText(path: string, text: string): Promise<FileFacts>;
  /** Ends the archive and waits until it is on disk. */
  finish(): Promise<void>;
  /** Gives it up; the file stays as it is. */
  abort(): Promise<void>;
}

/** `path` must not be there yet. An abort of `signal` ends what is under way. */
export function createArchive(path: string, { time, signal }: { time: Date; signal: AbortSignal }): ArchiveWriter {
  const { readable, controller } = createTarPacker();
  const compressor = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  // The library's stream and Node's are of one kind, but typed by different libraries.
  const source = Readable.fromWeb(readable as Parameters<typeof Readable.fromWeb>[0]);
  let failure: { cause: unknown } | null = null;
  const written = pipeline(source, compressor, createSyncedFile(path), { signal }).catch((cause: unknown) => {
    failure ??= { cause };
  });

  /** What ended the output says more than what became of an entry because of it. */
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
    async addFile(name, file) {
      const handle = await open(file, "r");
      try {
        const { size } = await handle.stat();
        return await explained(add(name, size, chunksOf(handle, size, name)));
      } finally {
        await handle.close();
      }
    },
    addText(name, text) {
      const bytes = Buffer.from(text);
      return explained(add(name, bytes.byteLength, oneChunk(bytes)));
    },
    async finish() {
      controller.finalize();
      await written;
      if (failure !== null) throw failure.cause;
    },
    async abort() {
      controller.error(new BackupError("The backup was given up"));
      await written;
    },
  };
}

/** Exactly `size` bytes: what is appended meanwhile is not of this backup. */
async function* chunksOf(
  handle: Awaited<ReturnType<typeof open>>,
  size: number,
  name: string,
): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < size; ) {
    // A new one each time: the archive keeps it until it has been compressed.
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
