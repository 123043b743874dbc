import fs from "node:fs";
import type { WalFrames } from "./types.ts";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_BYTES_OFFSET = 8;
const SALTS_OFFSET = 16;
const FRAME_SALTS_OFFSET = 8;
const SALTS_BYTES = 6;
const SALTS_SHIFT = 2;
/** Frames of one read: a large transaction is passed on in pieces. */
const FRAMES_AT_ONCE = 256;

// 48 of the 64 bits, exact as a number: one half grows by one with each restart, the other is random.
const saltsAt = (bytes: Buffer, offset: number): number => bytes.readUIntBE(offset + SALTS_SHIFT, SALTS_BYTES);

/** Frames of the last read, of whichever file: reads are synchronous, and memory that is taken anew for each costs more than the read. */
let frames = Buffer.alloc(0);

function framesOf(bytes: number): Buffer<ArrayBuffer> {
  if (frames.byteLength < bytes) frames = Buffer.alloc(bytes);
  return frames.subarray(0, bytes);
}

/**
 * Reads what commits have appended to a WAL, each frame once. A restart of the WAL is seen by its salts: the file keeps its length,
 * and old frames follow the new ones. So `frameCount` is SQLite's own number, and not the length of the file.
 */
export class FrameReader {
  readonly #options: { descriptor: number; frameCount: () => number; take: (frames: WalFrames) => void };
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #salts = -1;
  #pageBytes = 0;
  #read = 0;

  constructor(options: { descriptor: number; frameCount: () => number; take: (frames: WalFrames) => void }) {
    this.#options = options;
  }

  /** Passes on all frames that are new. Returns whether there were any. */
  read(): boolean {
    const count = this.#options.frameCount();
    if (count === 0) return false;
    if (count <= this.#read || this.#salts < 0) this.#readHeader(count);
    if (count === this.#read) return false;
    // Each frame has the salts of its WAL: the header is read only where they are others.
    if (!this.#readFrames(count)) {
      this.#readHeader(count);
      if (!this.#readFrames(count)) throw new Error("frames of a WAL have other salts than its header");
    }
    return true;
  }

  /** Bytes of the frames that are new. */
  get waitingBytes(): number {
    const count = this.#options.frameCount();
    if (count === 0) return 0;
    this.#readHeader(count);
    return (count - this.#read) * (FRAME_HEADER_BYTES + this.#pageBytes);
  }

  /** Leaves out all frames that are new. */
  skip(): void {
    const count = this.#options.frameCount();
    if (count === 0) return;
    this.#readHeader(count);
    this.#read = count;
  }

  /** Passes on all frames that are new, a piece at each step. The WAL must not restart meanwhile. */
  *pieces(): Generator<void> {
    const count = this.#options.frameCount();
    if (count === 0) return;
    this.#readHeader(count);
    while (this.#read < count) {
      if (!this.#readFrames(Math.min(count, this.#read + FRAMES_AT_ONCE))) {
        throw new Error("frames of a WAL have other salts than its header");
      }
      yield;
    }
  }

  #readHeader(count: number): void {
    fs.readSync(this.#options.descriptor, this.#header, 0, HEADER_BYTES, 0);
    const salts = saltsAt(this.#header, SALTS_OFFSET);
    if (salts !== this.#salts || count < this.#read) this.#read = 0;
    this.#salts = salts;
    this.#pageBytes = this.#header.readUInt32BE(PAGE_BYTES_OFFSET);
  }

  /** Passes on the frames up to `count`. false: those that follow are of another WAL. */
  #readFrames(count: number): boolean {
    const { descriptor, take } = this.#options;
    const frameBytes = FRAME_HEADER_BYTES + this.#pageBytes;
    while (this.#read < count) {
      const first = this.#read;
      const some = Math.min(FRAMES_AT_ONCE, count - first);
      const content = framesOf(some * frameBytes);
      const got = fs.readSync(descriptor, content, 0, content.byteLength, HEADER_BYTES + first * frameBytes);
      if (got !== content.byteLength)
        throw new Error(`a WAL has ${got} bytes of frames instead of ${content.byteLength}`);
      if (saltsAt(content, FRAME_SALTS_OFFSET) !== this.#salts) return false;
      this.#read += some;
      take({ pageBytes: this.#pageBytes, first, salts: this.#salts, content });
    }
    return true;
  }
}
