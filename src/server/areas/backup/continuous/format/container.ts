import { fstatSync, readSync } from "node:fs";
import { BackupError } from "../../types.ts";

/** First bytes of each object that is no manifest. */
const MAGIC = Buffer.from("PLATCB01");
const LENGTH_BYTES = 4;
const HASH_BYTES = 32;

/** Position of a block in its object. */
export interface Span {
  offset: number;
  length: number;
}

/**
 * Writes an object of the store: blocks, then a description of them in JSON, its length, and the SHA-256 of all bytes before.
 * docs/continuous-format.md describes it.
 */
export class ContainerWriter {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #hash = new Bun.CryptoHasher("sha256");
  #length = 0;

  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write;
    this.#add(MAGIC);
  }

  add(block: Uint8Array): Span {
    const span = { offset: this.#length, length: block.byteLength };
    this.#add(block);
    return span;
  }

  /** Completes the object. Returns its length and its hash, which is also its end. */
  finish(description: object): { bytes: number; sha256: string } {
    const text = Buffer.from(JSON.stringify(description));
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(text.byteLength);
    this.#add(text);
    this.#add(length);
    const hash = this.#hash.digest();
    this.#write(hash);
    return { bytes: this.#length + HASH_BYTES, sha256: Buffer.from(hash).toString("hex") };
  }

  #add(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#length += bytes.byteLength;
    this.#write(bytes);
  }
}

export interface Container<Description> {
  description: Description;
  sha256: string;
  block(span: Span): Uint8Array<ArrayBuffer>;
}

/** Reads an object. Errors: BackupError if it is not whole. */
export function readContainer<Description>(name: string, bytes: Uint8Array<ArrayBuffer>): Container<Description> {
  const hashOffset = bytes.byteLength - HASH_BYTES;
  const whole = bytes.subarray(0, Math.max(0, hashOffset));
  const sha256 = new Bun.CryptoHasher("sha256").update(whole).digest("hex");
  if (
    hashOffset < MAGIC.byteLength + LENGTH_BYTES ||
    sha256 !== Buffer.from(bytes.subarray(hashOffset)).toString("hex")
  ) {
    throw new BackupError(`${name} is damaged: its hash is not that of its content`);
  }
  if (!MAGIC.equals(whole.subarray(0, MAGIC.byteLength))) throw new BackupError(`${name} has an unknown format`);
  const view = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength);
  const lengthOffset = whole.byteLength - LENGTH_BYTES;
  const text = view.toString("utf8", lengthOffset - view.readUInt32BE(lengthOffset), lengthOffset);
  return {
    // Whoever wrote the hash wrote the description.
    description: JSON.parse(text) as Description,
    sha256,
    block: ({ offset, length }) => whole.subarray(offset, offset + length),
  };
}

/** Bytes of a file that are read at a time. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads an object that may be larger than the memory, from a file: a block is read when it is asked for, while the descriptor is
 * open. Errors: BackupError if it is not whole.
 */
export function openContainer<Description>(name: string, descriptor: number): Container<Description> {
  const read = ({ offset, length }: Span): Uint8Array<ArrayBuffer> => {
    const bytes = new Uint8Array(length);
    for (let got = 0; got < length; ) {
      const some = readSync(descriptor, bytes, got, length - got, offset + got);
      if (some === 0) throw new BackupError(`${name} is damaged: it is cut off`);
      got += some;
    }
    return bytes;
  };
  const hashOffset = fstatSync(descriptor).size - HASH_BYTES;
  if (hashOffset < MAGIC.byteLength + LENGTH_BYTES) throw new BackupError(`${name} is damaged: it is cut off`);
  const hash = new Bun.CryptoHasher("sha256");
  for (let offset = 0; offset < hashOffset; offset += CHUNK_BYTES) {
    hash.update(read({ offset, length: Math.min(CHUNK_BYTES, hashOffset - offset) }));
  }
  const sha256 = hash.digest("hex");
  if (sha256 !== Buffer.from(read({ offset: hashOffset, length: HASH_BYTES })).toString("hex")) {
    throw new BackupError(`${name} is damaged: its hash is not that of its content`);
  }
  if (!MAGIC.equals(read({ offset: 0, length: MAGIC.byteLength })))
    throw new BackupError(`${name} has an unknown format`);
  const lengthOffset = hashOffset - LENGTH_BYTES;
  const length = Buffer.from(read({ offset: lengthOffset, length: LENGTH_BYTES })).readUInt32BE();
  const text = Buffer.from(read({ offset: lengthOffset - length, length })).toString();
  // Whoever wrote the hash wrote the description.
  return { description: JSON.parse(text) as Description, sha256, block: read };
}
