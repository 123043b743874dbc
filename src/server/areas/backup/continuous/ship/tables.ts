import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CONTINUOUS_FOLDER } from "../../layout.ts";
import type { FileStamp } from "../capture/records.ts";
import { PageHashes } from "../format/pages.ts";

const LINE_END = 0x0a;

/** State of a file in the store, as the storing process knows it. */
export interface KnownFile {
  hashes: PageHashes;
  /** Hash of the entry that has made this state. */
  entry: string;
  /** The closed file with this state; null: it is open, or was not closed. */
  stamp: FileStamp | null;
}

/**
 * Keeps the hashes of all pages of each file in the data directory, for the next process. What a crash damages there costs a copy of
 * the file.
 */
export class HashTables {
  readonly #folder: string;

  constructor(dataDirectory: string) {
    this.#folder = join(dataDirectory, CONTINUOUS_FOLDER, "hashes");
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Reads what is known of the state that an entry has made; null: nothing, or of another state. */
  read(id: string, entry: string): KnownFile | null {
    const path = join(this.#folder, id);
    if (!existsSync(path)) return null;
    try {
      const bytes = readFileSync(path);
      const lineEnd = bytes.indexOf(LINE_END);
      const head = JSON.parse(bytes.toString("utf8", 0, lineEnd));
      if (head.entry !== entry) return null;
      // A copy, which is aligned.
      const words = new Uint32Array(new Uint8Array(bytes.subarray(lineEnd + 1)).buffer);
      const hashes = new PageHashes(head.pageBytes, words);
      return hashes.checksum === head.checksum ? { hashes, entry, stamp: head.stamp } : null;
    } catch {
      // A crash has left a part: the file is copied anew.
      return null;
    }
  }

  save(id: string, { hashes, entry, stamp }: KnownFile): void {
    const { words, pageBytes, checksum } = hashes;
    const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    const head = Buffer.from(`${JSON.stringify({ entry, stamp, pageBytes, checksum })}\n`);
    const temporary = join(this.#folder, `${id}.new`);
    writeFileSync(temporary, Buffer.concat([head, bytes]), { mode: 0o600 });
    renameSync(temporary, join(this.#folder, id));
  }

  forget(id: string): void {
    rmSync(join(this.#folder, id), { force: true });
  }
}
