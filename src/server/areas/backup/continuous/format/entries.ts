import { isJsonObject } from "../../../../../kernel/json/json.ts";
import { BackupError } from "../../types.ts";

/** `[page, base, result]`: the hashes of a page before and after. base null: the page is whole, and no difference. */
export type ChangedPage = readonly [page: number, base: string | null, result: string];

/**
 * - `commit`: one commit of the file.
 * - `scan`: what a comparison of the whole file has found; stands for all commits between.
 * - `full`: every page of the file.
 * - `merged`: what consecutive entries have changed, in an object that stands for several segments.
 */
export type EntryKind = "commit" | "scan" | "full" | "merged";

/** State of a file that an entry makes. */
export interface Position {
  /** Number and nonce of the commit. 0: the file has no commit yet. */
  number: number;
  nonce: number;
  /** Time of the commit, in milliseconds. */
  at: number;
  /** Place in the order of the server's commits. */
  place: number;
}

export interface EntryHead extends Position {
  kind: EntryKind;
  pageBytes: number;
  /** Pages of the file after the entry. */
  pages: number;
  /** Checksum of the file before and after. before null: of a full copy. */
  before: string | null;
  after: string;
  /** Hash of the former entry's line, or of the copy that it leads on from; null for a full copy. */
  previous: string | null;
  changed: readonly ChangedPage[];
  /** Place of the first entry, hash of the last one's line, and least number of pages in between; of a `merged` one only. */
  merged?: { firstPlace: number; last: string; least: number };
}

export interface Entry {
  head: EntryHead;
  /** Contents of the changed pages in their order, each whole or as a difference from its base. */
  pages: Uint8Array;
}

const LINE_END = 0x0a;

/** Writes the line of an entry, which its pages follow. It has their hashes, so that its own stands for the entry. */
export function encodeHead(head: EntryHead): { line: Buffer<ArrayBuffer>; hash: string } {
  const line = Buffer.from(`${JSON.stringify(head)}\n`);
  return { line, hash: hashOf(line) };
}

const hashOf = (line: Uint8Array): string => new Bun.CryptoHasher("sha256").update(line).digest("hex");

/** Reads the entries of a block. Errors: BackupError. */
export function* decodeEntries(name: string, block: Uint8Array): Generator<Entry & { hash: string }> {
  for (let start = 0; start < block.byteLength; ) {
    const lineEnd = block.indexOf(LINE_END, start);
    if (lineEnd < 0) throw new BackupError(`${name} is damaged: an entry has no end`);
    const value: unknown = JSON.parse(Buffer.from(block.subarray(start, lineEnd)).toString());
    if (!isJsonObject(value)) throw new BackupError(`${name} is damaged: an entry is no object`);
    // The hash of the object was compared.
    const head = value as unknown as EntryHead;
    const end = lineEnd + 1 + head.changed.length * head.pageBytes;
    if (end > block.byteLength) throw new BackupError(`${name} is damaged: an entry is cut off`);
    // A copy, which is aligned.
    yield { head, pages: block.slice(lineEnd + 1, end), hash: hashOf(block.subarray(start, lineEnd + 1)) };
    start = end;
  }
}
