import { addWords, type Sums, UnknownIndex, type WalEnd, WalIndex, type WriteAt } from "./wal-index.ts";

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const WORD_BYTES = 4;
/** The magic number of a WAL whose sums are of little-endian words, and its one version. */
const MAGIC = 0x377f0682;
const VERSION = 3_007_000;
const HEADER = { version: 4, pageBytes: 8, restarts: 12, salts: 16, sums: 24 } as const;
const FRAME = { size: 4, salts: 8, sums: 16 } as const;

/** Pages to be appended: their numbers, and their contents in this order. */
export interface AppendedPages {
  pageBytes: number;
  numbers: readonly number[];
  images: Uint8Array;
}

/**
 * Appends frames to a WAL, and shows them in its index, as SQLite's writer does, with pages that were written elsewhere. Call it only
 * while a connection of this process has the lock of the writer: it is the only one that keeps others from writing.
 */
export class WalWriter {
  readonly #wal: number;
  readonly #index: WalIndex;
  readonly #write: WriteAt;
  readonly #randomSalts: (count: number) => Uint8Array;
  /** End of the parts of a transaction that is not complete, behind what is committed. */
  #open: (WalEnd & { committed: number; former: Uint8Array }) | null = null;

  constructor(
    { wal, index }: { wal: number; index: number },
    { write, randomSalts }: { write: WriteAt; randomSalts: (count: number) => Uint8Array },
  ) {
    this.#wal = wal;
    this.#index = new WalIndex(index, write);
    this.#write = write;
    this.#randomSalts = randomSalts;
  }

  /** Frames in the WAL, with those of a transaction that is not complete. */
  get frames(): number {
    return this.#open?.frames ?? this.#index.read().frames;
  }

  /** Appends pages of a transaction that is not complete. Nobody sees them. Errors: UnknownIndex, those of the disk. */
  part(pages: AppendedPages): void {
    const committed = this.#index.read();
    const end = this.#goOn(committed, pages.pageBytes);
    this.#open = { ...this.#append(pages, end, null), committed: committed.frames, former: committed.salts };
  }

  /** Forgets the parts of a transaction that does not come. */
  forgetParts(): void {
    this.#open = null;
  }

  /** Appends the last pages of a transaction, after which the file has `count` pages, and shows it. Errors: as of `part`. */
  commit(pages: AppendedPages, count: number): void {
    const end = this.#append(pages, this.#goOn(this.#index.read(), pages.pageBytes), count);
    this.#open = null;
    this.#index.commit(end, { pageBytes: pages.pageBytes, pages: count });
  }

  /** Returns the end behind which the next frame stands. */
  #goOn(committed: WalEnd, pageBytes: number): WalEnd {
    const open = this.#open;
    if (open === null) return committed.frames === 0 ? this.#begin(committed, pageBytes) : committed;
    // A WAL that was ended has other salts from then on, also where it has no frame.
    const isSame = Buffer.from(open.former).equals(Buffer.from(committed.salts));
    if (!isSame || committed.frames !== open.committed)
      throw new UnknownIndex("a WAL was changed while a transaction was appended to it");
    return open;
  }

  /** Writes the header of a WAL that has no frame. */
  #begin({ salts: former }: WalEnd, pageBytes: number): WalEnd {
    const header = Buffer.alloc(WAL_HEADER_BYTES);
    header.writeUInt32BE(MAGIC, 0);
    header.writeUInt32BE(VERSION, HEADER.version);
    header.writeUInt32BE(pageBytes, HEADER.pageBytes);
    // Others than before: frames that a power cut brings back are of another WAL.
    const salts = new Uint8Array(this.#randomSalts(FRAME.sums - FRAME.salts));
    const first = new DataView(salts.buffer, salts.byteOffset);
    first.setUint32(0, new DataView(former.buffer, former.byteOffset).getUint32(0) + 1);
    header.set(salts, HEADER.salts);
    const sums: Sums = [0, 0];
    addWords(wordsOf(header), 0, HEADER.sums / WORD_BYTES, sums);
    header.writeInt32BE(sums[0], HEADER.sums);
    header.writeInt32BE(sums[1], HEADER.sums + WORD_BYTES);
    this.#write(this.#wal, header, 0);
    return { frames: 0, sums, salts };
  }

  /** Returns the new end. `count`: pages of the file after the last frame; null: another follows. */
  #append({ pageBytes, numbers, images }: AppendedPages, end: WalEnd, count: number | null): WalEnd {
    const frameBytes = FRAME_HEADER_BYTES + pageBytes;
    const frames = Buffer.alloc(numbers.length * frameBytes);
    const words = wordsOf(frames);
    const sums: Sums = [...end.sums];
    for (const [index, number] of numbers.entries()) {
      const at = index * frameBytes;
      frames.writeUInt32BE(number, at);
      if (index === numbers.length - 1 && count !== null) frames.writeUInt32BE(count, at + FRAME.size);
      frames.set(end.salts, at + FRAME.salts);
      frames.set(images.subarray(index * pageBytes, (index + 1) * pageBytes), at + FRAME_HEADER_BYTES);
      addWords(words, at / WORD_BYTES, (at + FRAME.salts) / WORD_BYTES, sums);
      addWords(words, (at + FRAME_HEADER_BYTES) / WORD_BYTES, (at + frameBytes) / WORD_BYTES, sums);
      frames.writeInt32BE(sums[0], at + FRAME.sums);
      frames.writeInt32BE(sums[1], at + FRAME.sums + WORD_BYTES);
    }
    this.#write(this.#wal, frames, WAL_HEADER_BYTES + end.frames * frameBytes);
    this.#index.add(end.frames + 1, numbers, { isAfterOthers: this.#open !== null });
    return { frames: end.frames + numbers.length, sums, salts: end.salts };
  }
}

const wordsOf = (bytes: Buffer): Int32Array =>
  new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / WORD_BYTES);
