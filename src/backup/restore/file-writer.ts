import { close, closeSync, fdatasync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { SYNCS_AT_ONCE_MAX } from "../limits.ts";
import type { FileFacts } from "../types.ts";

const OWNER_ONLY = 0o600;
const syncFile = promisify(fdatasync);
const closeFile = promisify(close);

/** Writes many new files, and has the disk take some of them together: one by one that would be most of the time. */
export interface FileWriter {
  /** The size and hash of what was written. Errors: there is such a file. */
  write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<Pick<FileFacts, "size" | "sha256">>;
  /** Resolves when all of it is on disk. Errors: what the disk failed with. */
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
      // "wx": whatever is there already stays as it is.
      const descriptor = openSync(path, "wx", OWNER_ONLY);
      const hash = new Bun.CryptoHasher("sha256");
      let size = 0;
      try {
        for await (const chunk of chunks) {
          hash.update(chunk);
          // Nobody is served by this process: a plain call is the quickest.
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
