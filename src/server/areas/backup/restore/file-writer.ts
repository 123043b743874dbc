import { close, closeSync, fdatasync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { SYNCS_AT_ONCE_MAX } from "../limits.ts";
import type { FileFacts } from "../types.ts";

const OWNER_ONLY = 0o600;
const syncFile = promisify(fdatasync);
const closeFile = promisify(close);

/** Writes many new files and syncs several concurrently: one by one, syncs would take most of the time. */
export interface FileWriter {
  /** Resolves to the size and hash of the content. Errors: the file exists. */
  write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<Pick<FileFacts, "size" | "sha256">>;
  /** Resolves when all files are on disk. Errors: those of the disk. */
  settle(): Promise<void>;
}

export function createFileWriter(): FileWriter {
  let syncs: Promise<void>[] = [];
  const settle = async (): Promise<void> => {
    const outcomes = await Promise.allSettled(syncs);
    syncs = [];
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  };
  return {
    settle,
    async write(path, chunks) {
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
