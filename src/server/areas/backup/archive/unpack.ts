import { close, closeSync, createReadStream, fdatasync, mkdirSync, openSync, statSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import { createZstdDecompress } from "node:zlib";
import { createTarDecoder, type ParsedTarEntry } from "modern-tar";
import { codeOf, reasonOf } from "../../../../kernel/errors.ts";
import { jsonObjectOf } from "../../../../kernel/json/json.ts";
import { isKept } from "../layout.ts";
import { CHUNK_BYTES, HEADER_MAX_BYTES, MANIFEST_LINE_MAX_BYTES, SYNCS_AT_ONCE_MAX } from "../limits.ts";
import { type ArchiveHeader, BackupError, type FileFacts } from "../types.ts";
import { ARCHIVE_VERSION, HEADER_ENTRY, MANIFEST_ENTRY } from "./archive.ts";
import type { FactsStore } from "./facts-store.ts";

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

export interface Unpacking {
  file: string;
  /** The target; it exists and is empty. */
  folder: string;
  /** Receives the facts of the files; empty at the start. */
  facts: FactsStore;
  signal: AbortSignal;
}

/**
 * Unpacks an archive and compares every file with the manifest at its end. Nothing in it is trusted: it may contain only files,
 * only with names that a data directory has, each once. Errors: BackupError; those of the file system.
 */
export async function unpackArchive({ file, folder, facts, signal }: Unpacking): Promise<ArchiveHeader> {
  await requireCompressed(file);
  const writer = createFileWriter();
  try {
    return await unpackEntries({ file, folder, facts, signal, writer });
  } finally {
    await writer.settle();
  }
}

async function unpackEntries(unpacking: Unpacking & { writer: FileWriter }): Promise<ArchiveHeader> {
  const { file, folder, facts, signal, writer } = unpacking;
  let header: ArchiveHeader | null = null;
  let isEnded = false;
  for await (const { header: entry, body } of entriesOf(file)) {
    signal.throwIfAborted();
    if (isEnded) throw damaged(file, "it has entries after its manifest");
    if (entry.type !== "file")
      throw new BackupError(`${file} contains a ${entry.type}, "${entry.name}", which is refused`);
    if (header === null) {
      if (entry.name !== HEADER_ENTRY) throw notOurs(file);
      header = parseHeader(file, await textOf(file, entry.size, chunksOf(file, body, signal)));
    } else if (entry.name === MANIFEST_ENTRY) {
      await compare(file, linesOf(chunksOf(file, body, signal), file), facts);
      isEnded = true;
    } else {
      if (!isKept(entry.name)) throw new BackupError(`${file} contains "${entry.name}", which no data directory has`);
      const written = await writer.write(join(folder, entry.name), chunksOf(file, body, signal)).catch((cause) => {
        throw codeOf(cause) === "EEXIST" ? damaged(file, `it contains ${entry.name} twice`) : cause;
      });
      facts.add({ path: entry.name, ...written });
    }
  }
  if (header === null) throw notOurs(file);
  if (!isEnded) throw damaged(file, "its end is missing");
  return header;
}

async function requireCompressed(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(ZSTD_MAGIC.length), 0, ZSTD_MAGIC.length, 0);
    if (bytesRead < ZSTD_MAGIC.length || !buffer.equals(ZSTD_MAGIC)) throw notOurs(file);
  } finally {
    await handle.close();
  }
}

async function* entriesOf(file: string): AsyncGenerator<ParsedTarEntry> {
  const decompressor = createZstdDecompress();
  const { size } = statSync(file);
  // A failure of either stream ends the other and the iteration below.
  pipeline(createReadStream(file, { highWaterMark: CHUNK_BYTES }), decompressor, () => {});
  // The stream is the same standard type, declared by two libraries.
  const bytes = Readable.toWeb(decompressor) as unknown as ReadableStream<Uint8Array>;
  const reader = bytes.pipeThrough(createTarDecoder({ strict: true })).getReader();
  try {
    for (;;) {
      const { done, value } = await reading(file, () => reader.read());
      if (done) break;
      yield value;
    }
    // The decompressor stops at the end of the compressed data, whatever follows.
    const surplusBytes = size - decompressor.bytesWritten;
    if (surplusBytes > 0) throw damaged(file, `it has ${surplusBytes} bytes after its end`);
  } finally {
    await reader.cancel().catch(() => {});
    decompressor.destroy();
  }
}

/** Yields the body of an entry. Errors of reading it are distinguished from errors of writing it to the disk. */
async function* chunksOf(
  file: string,
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = await reading(file, () => reader.read());
    if (done) return;
    yield value;
  }
}

async function reading<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw damaged(file, reasonOf(cause), cause);
  }
}

async function textOf(file: string, size: number, chunks: AsyncIterable<Uint8Array>): Promise<string> {
  if (size > HEADER_MAX_BYTES) throw notOurs(file);
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return Buffer.concat(read).toString("utf8");
}

function parseHeader(file: string, text: string): ArchiveHeader {
  const value = jsonObjectOf(text);
  const { format, version, platform, createdAt } = value ?? {};
  if (format !== "platform-backup" || typeof version !== "number") throw notOurs(file);
  if (version > ARCHIVE_VERSION) {
    throw new BackupError(`${file} was made by a later version of Platform (${String(platform)}) and cannot be read`);
  }
  if (typeof platform !== "string" || typeof createdAt !== "string") throw notOurs(file);
  return { format, version, platform, createdAt };
}

/** Compares the manifest with the unpacked files: every line must match a file, and every file a line. */
async function compare(file: string, lines: AsyncIterable<string>, facts: FactsStore): Promise<void> {
  for await (const line of lines) {
    const { path, size, sha256 } = jsonObjectOf(line) ?? {};
    if (typeof path !== "string" || typeof size !== "number" || typeof sha256 !== "string") {
      throw damaged(file, "its manifest cannot be read");
    }
    if (!facts.confirm({ path, size, sha256 })) throw damaged(file, `${path} does not match the manifest`);
  }
  const surplus = facts.unconfirmed();
  if (surplus !== null) throw damaged(file, `${surplus} is not in the manifest`);
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MANIFEST_LINE_MAX_BYTES) throw damaged(file, "its manifest cannot be read");
    yield* lines;
  }
  if (rest !== "") yield rest;
}

const notOurs = (file: string) => new BackupError(`${file} is not a backup of a data directory`);
const damaged = (file: string, why: string, cause?: unknown) =>
  new BackupError(`${file} is damaged: ${why}`, { cause });

const OWNER_ONLY = 0o600;
const syncFile = promisify(fdatasync);
const closeFile = promisify(close);

/** Writes many new files and syncs several concurrently: one by one, syncs would take most of the time. */
export type FileWriter = ReturnType<typeof createFileWriter>;

export function createFileWriter() {
  let syncs: Promise<void>[] = [];
  const settle = async (): Promise<void> => {
    const outcomes = await Promise.allSettled(syncs);
    syncs = [];
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  };
  return {
    /** Resolves when all files are on disk. Errors: those of the disk. */
    settle,
    /** Resolves to the size and hash of the content. Errors: the file exists. */
    async write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<Pick<FileFacts, "size" | "sha256">> {
      mkdirSync(dirname(path), { recursive: true });
      // "wx" never changes an existing file.
      const descriptor = openSync(path, "wx", OWNER_ONLY);
      const hash = new Bun.CryptoHasher("sha256");
      let size = 0;
      try {
        for await (const chunk of chunks) {
          hash.update(chunk);
          // This process serves no requests, so a synchronous call is fastest.
          for (let written = 0; written < chunk.byteLength; ) written += writeSync(descriptor, chunk, written);
          size += chunk.byteLength;
        }
      } catch (cause) {
        closeSync(descriptor);
        throw cause;
      }
      syncs.push(syncFile(descriptor).finally(() => closeFile(descriptor)));
      if (syncs.length >= SYNCS_AT_ONCE_MAX) await settle();
      return { size, sha256: hash.digest("hex") };
    },
  };
}
