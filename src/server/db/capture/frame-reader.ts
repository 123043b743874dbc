import fs from "node:fs";
import type { WalFrames } from "./types.ts";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_BYTES_OFFSET = 8;
const SALTS_OFFSET = 16;
const SALTS_BYTES = 6;
const SALTS_SHIFT = 2;
/** Frames of one read: a large transaction is passed on in pieces. */
const FRAMES_AT_ONCE = 256;

/**
 * Reads what commits have appended to a WAL, each frame once. A restart of the WAL is seen by its salts: the file keeps its length,
 * and old frames follow the new ones. So `frameCount` is SQLite's own number, and not the length of the file.
 */
export class FrameReader {
  readonly #options: { descriptor: number; frameCount: () => number; take: (frames: WalFrames) => void };
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #salts = -1;
  #read = 0;

  constructor(options: { descriptor: number; frameCount: () => number; take: (frames: WalFrames) => void }) {
    this.#options = options;
  }

  /** Passes on all frames that are new. Returns whether there were any. */
  read(): boolean {
    const { descriptor, frameCount, take } = this.#options;
    const count = frameCount();
    if (count === 0) return false;
    fs.readSync(descriptor, this.#header, 0, HEADER_BYTES, 0);
    // 48 of the 64 bits, exact as a number: one half grows by one with each restart, the other is random.
    const salts = this.#header.readUIntBE(SALTS_OFFSET + SALTS_SHIFT, SALTS_BYTES);
    if (salts !== this.#salts || count < this.#read) {
      this.#salts = salts;
      this.#read = 0;
    }
    if (count === this.#read) return false;
    const pageBytes = this.#header.readUInt32BE(PAGE_BYTES_OFFSET);
    const frameBytes = FRAME_HEADER_BYTES + pageBytes;
    while (this.#read < count) {
      const first = this.#read;
      const some = Math.min(FRAMES_AT_ONCE, count - first);
      const content = Buffer.allocUnsafe(some * frameBytes);
      const got = fs.readSync(descriptor, content, 0, content.byteLength, HEADER_BYTES + first * frameBytes);
      if (got !== content.byteLength)
        throw new Error(`a WAL has ${got} bytes of frames instead of ${content.byteLength}`);
      this.#read += some;
      take({ pageBytes, first, salts, content });
    }
    return true;
  }
}
