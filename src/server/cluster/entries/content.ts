import { CONTENT_MAX_BYTES } from "./limits.ts";

/** State of a file: the number and the nonce of its last commit. Number 0: it has none yet. */
export interface FileState {
  number: number;
  nonce: number;
}

/** Pages that a transaction has changed. */
interface ChangedPages {
  pageBytes: number;
  /** Numbers of the pages, and their contents in this order, one behind the other. */
  numbers: readonly number[];
  images: Uint8Array;
}

/** A new file, with its content before its first commit. */
export interface CreatedContent {
  kind: "created";
  /** Path in the data directory, with `/`. */
  path: string;
  content: Uint8Array;
}

/** One commit, or what its parts have left of it. */
export interface CommitContent extends ChangedPages, FileState {
  kind: "commit";
  at: number;
  /** Place in the order of the owner's commits. */
  place: number;
  /** The state that it follows. */
  previous: FileState;
  /** Pages of the file after it. */
  pages: number;
  /** Parts that go before it. */
  parts: number;
}

/** Pages of a transaction that is too large for one row. They count only with the commit behind them. */
export interface PartContent extends ChangedPages {
  kind: "part";
  /** Position among the parts of its transaction, from 0. */
  index: number;
  previous: FileState;
}

export interface RemovedContent {
  kind: "removed";
  path: string;
}

/** A file whose content is in the object store: it was there before the cluster, or no commit describes what has changed it. */
export interface CopiedContent extends FileState {
  kind: "copied";
  path: string;
  /** Key and hash of the object. */
  key: string;
  sha256: string;
  /** Bytes of the file. */
  bytes: number;
}

/** Content of one row of the log, about one file. */
export type EntryContent = CreatedContent | CommitContent | PartContent | RemovedContent | CopiedContent;

/** A content that is not as it was written. */
export class DamagedContent extends Error {}
/** A content of a later version: its file cannot be followed any more. */
export class UnknownContent extends Error {}

/**
 * A content begins with its format (1 byte), its hash (8 bytes) and the length of the rest before compression (4 bytes). The rest is
 * compressed with zstd: length of the head (4 bytes), head in JSON, bytes.
 */
const FORMAT = 1;
const HASH_AT = 1;
const LENGTH_AT = 9;
const REST_AT = 13;
const HEAD_LENGTH_BYTES = 4;
/** The quickest: pages are mostly text with gaps, which it makes a third of. */
const LEVEL = 1;

const decoder = new TextDecoder();

/** Writes the content of a row. Errors: RangeError, it is larger than a row may be. */
export function encodeContent(content: EntryContent): Uint8Array<ArrayBuffer> {
  const { head, bytes } = split(content);
  const text = Buffer.from(JSON.stringify(head));
  const rest = Buffer.allocUnsafe(HEAD_LENGTH_BYTES + text.byteLength + bytes.byteLength);
  if (rest.byteLength > CONTENT_MAX_BYTES)
    throw new RangeError(`A row of the log may have ${CONTENT_MAX_BYTES} bytes, got ${rest.byteLength}`);
  rest.writeUInt32BE(text.byteLength, 0);
  rest.set(text, HEAD_LENGTH_BYTES);
  rest.set(bytes, HEAD_LENGTH_BYTES + text.byteLength);
  const compressed = Bun.zstdCompressSync(rest, { level: LEVEL });
  const encoded = new Uint8Array(REST_AT + compressed.byteLength);
  const view = new DataView(encoded.buffer);
  view.setUint8(0, FORMAT);
  view.setUint32(LENGTH_AT, rest.byteLength);
  encoded.set(compressed, REST_AT);
  view.setBigUint64(HASH_AT, Bun.hash.xxHash64(encoded.subarray(LENGTH_AT)));
  return encoded;
}

/** Reads the content of a row. Errors: DamagedContent, UnknownContent. */
export function decodeContent(encoded: Uint8Array): EntryContent {
  const view = new DataView(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  if (encoded.byteLength < REST_AT) throw new DamagedContent("a row of the log is cut off");
  // First: a later version may have another hash.
  if (view.getUint8(0) !== FORMAT) throw new UnknownContent(`a row of the log has the format ${view.getUint8(0)}`);
  if (view.getBigUint64(HASH_AT) !== Bun.hash.xxHash64(encoded.subarray(LENGTH_AT)))
    throw new DamagedContent("a row of the log has another hash than its content");
  const length = view.getUint32(LENGTH_AT);
  if (length > CONTENT_MAX_BYTES) throw new DamagedContent(`a row of the log has ${length} bytes`);
  const rest = Bun.zstdDecompressSync(encoded.subarray(REST_AT));
  const headEnd = HEAD_LENGTH_BYTES + new DataView(rest.buffer, rest.byteOffset).getUint32(0);
  // Whoever wrote the hash wrote the head.
  const head = JSON.parse(decoder.decode(rest.subarray(HEAD_LENGTH_BYTES, headEnd))) as Head;
  return join(head, rest.subarray(headEnd));
}

type Head =
  | Omit<CreatedContent, "content">
  | Omit<CommitContent, "images">
  | Omit<PartContent, "images">
  | RemovedContent
  | CopiedContent;

const NOTHING = new Uint8Array(0);

function split(content: EntryContent): { head: Head; bytes: Uint8Array } {
  switch (content.kind) {
    case "created": {
      const { content: bytes, ...head } = content;
      return { head, bytes };
    }
    case "commit":
    case "part": {
      const { images, ...head } = content;
      return { head, bytes: images };
    }
    default:
      return { head: content, bytes: NOTHING };
  }
}

function join(head: Head, bytes: Uint8Array): EntryContent {
  switch (head.kind) {
    case "created":
      requirePath(head.path);
      return { ...head, content: bytes };
    case "commit":
    case "part":
      if (head.numbers.length * head.pageBytes !== bytes.byteLength)
        throw new DamagedContent("a row of the log has not the pages that it names");
      return { ...head, images: bytes };
    case "removed":
    case "copied":
      requirePath(head.path);
      return head;
    default:
      throw new UnknownContent("a row of the log is of an unknown kind");
  }
}

const PATH = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;

/** Names of files become paths on every node: none leads out of the data directory. */
function requirePath(path: string): void {
  if (!PATH.test(path)) throw new DamagedContent(`a row of the log names the file ${JSON.stringify(path)}`);
}
