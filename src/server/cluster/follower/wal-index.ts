import fs from "node:fs";

/**
 * The layout of SQLite's index of a WAL (https://sqlite.org/walformat.html): two equal copies of its header, then the marks of readers;
 * blocks of 32 KiB, each with the pages of so many frames and a hash table of them. The first block has the header in its beginning.
 */
const BLOCK_BYTES = 32_768;
const HEADER_BYTES = 48;
const FIRST_PAGES_AT = 136;
const WORD_BYTES = 4;
const BLOCK_FRAMES = 4_096;
const FIRST_FRAMES = BLOCK_FRAMES - FIRST_PAGES_AT / WORD_BYTES;
const HASH_AT = BLOCK_FRAMES * WORD_BYTES;
const SLOTS = 8_192;
const SLOT_BYTES = 2;
const HASH_FACTOR = 383;

/** Offsets in the header. Its numbers have the byte order of the machine, which is little endian wherever the server runs. */
const VERSION_AT = 0;
const CHANGE_AT = 8;
const IS_READY_AT = 12;
const IS_BIG_ENDIAN_AT = 13;
const PAGE_BYTES_AT = 14;
const FRAMES_AT = 16;
const PAGES_AT = 20;
const SUMS_AT = 24;
const SALTS_AT = 32;
const OWN_SUMS_AT = 40;
const SALTS_BYTES = 8;
/** The one version that there is. */
const VERSION = 3_007_000;

/** Writes at a place of a file, all of it. Tests end the process in between. */
export type WriteAt = (descriptor: number, bytes: Uint8Array, offset: number) => void;

export const writeAt: WriteAt = (descriptor, bytes, offset) => {
  for (let written = 0; written < bytes.byteLength; )
    written += fs.writeSync(descriptor, bytes, written, bytes.byteLength - written, offset + written);
};

/** Two sums over pairs of words, which SQLite continues from frame to frame. */
export type Sums = [first: number, second: number];

/** Continues the sums over words `from` up to `to`. Each sum of two is cut to 32 bits: with three at once it takes ten times as long. */
export function addWords(words: Int32Array, from: number, to: number, sums: Sums): void {
  let [first, second] = sums;
  for (let index = from; index < to; index += 2) {
    first = (((first + (words[index] ?? 0)) | 0) + second) | 0;
    second = (((second + (words[index + 1] ?? 0)) | 0) + first) | 0;
  }
  sums[0] = first;
  sums[1] = second;
}

/** State of a WAL: its header, as far as a writer goes on from there. */
export interface WalEnd {
  frames: number;
  /** Sums up to the last frame. */
  sums: Sums;
  salts: Uint8Array;
}

/** An index that is not as this version of SQLite should write it. */
export class UnknownIndex extends Error {}

/** Changes the index of a WAL as SQLite's writer does. Call it only while its connection has the lock of the writer. */
export class WalIndex {
  readonly #descriptor: number;
  readonly #write: WriteAt;
  readonly #header = Buffer.alloc(2 * HEADER_BYTES);
  readonly #hash = Buffer.alloc(SLOTS * SLOT_BYTES);

  constructor(descriptor: number, write: WriteAt) {
    this.#descriptor = descriptor;
    this.#write = write;
  }

  /** Reads the end of what was committed. Errors: UnknownIndex. */
  read(): WalEnd {
    const header = this.#header;
    const got = fs.readSync(this.#descriptor, header, 0, header.byteLength, 0);
    const isEven = header.subarray(0, HEADER_BYTES).equals(header.subarray(HEADER_BYTES));
    if (got < header.byteLength || !isEven) throw new UnknownIndex("the index of a WAL has no header");
    if (header.readUInt32LE(VERSION_AT) !== VERSION || header[IS_READY_AT] !== 1 || header[IS_BIG_ENDIAN_AT] !== 0)
      throw new UnknownIndex("the index of a WAL is of another version");
    return {
      frames: header.readUInt32LE(FRAMES_AT),
      sums: [header.readInt32LE(SUMS_AT), header.readInt32LE(SUMS_AT + WORD_BYTES)],
      salts: new Uint8Array(header.subarray(SALTS_AT, SALTS_AT + SALTS_BYTES)),
    };
  }

  /** Adds frames from number `first` on, counted from 1. Nobody looks at them before `commit`. */
  add(first: number, pages: readonly number[], { isAfterOthers }: { isAfterOthers: boolean }): void {
    for (let done = 0; done < pages.length; ) {
      const place = placeOf(first + done);
      const count = Math.min(pages.length - done, place.capacity - place.index);
      this.#addToBlock(place, pages.slice(done, done + count), isAfterOthers || done > 0);
      done += count;
    }
  }

  /** Shows readers everything up to this end: the last of a commit's writes. */
  commit({ frames, sums, salts }: WalEnd, { pageBytes, pages }: { pageBytes: number; pages: number }): void {
    const header = this.#header.subarray(0, HEADER_BYTES);
    header.writeUInt32LE(VERSION, VERSION_AT);
    header.writeUInt32LE((header.readUInt32LE(CHANGE_AT) + 1) >>> 0, CHANGE_AT);
    header[IS_READY_AT] = 1;
    header[IS_BIG_ENDIAN_AT] = 0;
    // 65,536 is stored as 1.
    header.writeUInt16LE((pageBytes & 0xff00) | (pageBytes >>> 16), PAGE_BYTES_AT);
    header.writeUInt32LE(frames, FRAMES_AT);
    header.writeUInt32LE(pages, PAGES_AT);
    header.writeInt32LE(sums[0], SUMS_AT);
    header.writeInt32LE(sums[1], SUMS_AT + WORD_BYTES);
    header.set(salts, SALTS_AT);
    const own: Sums = [0, 0];
    addWords(
      new Int32Array(header.buffer, header.byteOffset, HEADER_BYTES / WORD_BYTES),
      0,
      OWN_SUMS_AT / WORD_BYTES,
      own,
    );
    header.writeInt32LE(own[0], OWN_SUMS_AT);
    header.writeInt32LE(own[1], OWN_SUMS_AT + WORD_BYTES);
    // The second copy first: a reader that finds both equal has a whole one.
    this.#write(this.#descriptor, header, HEADER_BYTES);
    this.#write(this.#descriptor, header, 0);
  }

  #addToBlock(place: Place, pages: readonly number[], isAfterOthers: boolean): void {
    if (place.index === 0) this.#clear(place);
    this.#readHash(place);
    // Left by a writer that was ended before its commit, or by one that rolled back.
    if (!isAfterOthers) this.#forgetBehind(place);
    const numbers = Buffer.alloc(pages.length * WORD_BYTES);
    for (const [index, page] of pages.entries()) numbers.writeUInt32LE(page, index * WORD_BYTES);
    this.#write(this.#descriptor, numbers, place.pagesAt + place.index * WORD_BYTES);
    const slot = Buffer.alloc(SLOT_BYTES);
    for (const [index, page] of pages.entries()) {
      let key = (page * HASH_FACTOR) & (SLOTS - 1);
      while (this.#hash.readUInt16LE(key * SLOT_BYTES) !== 0) key = (key + 1) & (SLOTS - 1);
      slot.writeUInt16LE(place.index + index + 1);
      this.#hash.set(slot, key * SLOT_BYTES);
      // Each by itself, so that no reader sees half of another.
      this.#write(this.#descriptor, slot, place.hashAt + key * SLOT_BYTES);
    }
  }

  #readHash({ hashAt }: Place): void {
    const got = fs.readSync(this.#descriptor, this.#hash, 0, this.#hash.byteLength, hashAt);
    this.#hash.fill(0, got);
  }

  #clear({ pagesAt, hashAt }: Place): void {
    this.#write(this.#descriptor, new Uint8Array(hashAt + SLOTS * SLOT_BYTES - pagesAt), pagesAt);
  }

  #forgetBehind({ index, pagesAt, hashAt, capacity }: Place): void {
    const next = Buffer.alloc(WORD_BYTES);
    fs.readSync(this.#descriptor, next, 0, WORD_BYTES, pagesAt + index * WORD_BYTES);
    if (next.readUInt32LE() === 0) return;
    for (let key = 0; key < SLOTS; key++)
      if (this.#hash.readUInt16LE(key * SLOT_BYTES) > index) this.#hash.writeUInt16LE(0, key * SLOT_BYTES);
    this.#write(this.#descriptor, this.#hash, hashAt);
    this.#write(this.#descriptor, new Uint8Array((capacity - index) * WORD_BYTES), pagesAt + index * WORD_BYTES);
  }
}

/** Position of a frame in the index. */
interface Place {
  /** Number of frames before it in its block. */
  index: number;
  capacity: number;
  pagesAt: number;
  hashAt: number;
}

function placeOf(frame: number): Place {
  const isFirst = frame <= FIRST_FRAMES;
  const block = isFirst ? 0 : Math.floor((frame - 1 - FIRST_FRAMES) / BLOCK_FRAMES) + 1;
  const before = isFirst ? 0 : FIRST_FRAMES + (block - 1) * BLOCK_FRAMES;
  const start = block * BLOCK_BYTES;
  return {
    index: frame - 1 - before,
    capacity: isFirst ? FIRST_FRAMES : BLOCK_FRAMES,
    pagesAt: isFirst ? FIRST_PAGES_AT : start,
    hashAt: start + HASH_AT,
  };
}
