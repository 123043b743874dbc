const NUMBER_BYTES = 4;
const SHA_BYTES = 32;

const sha = new Uint8Array(SHA_BYTES);
const shaView = new DataView(sha.buffer);
let numbered = new Uint8Array(0);

/** The hash of a page, in two halves, since 64 bits are no number. */
export interface PageHash {
  high: number;
  low: number;
}

/** Hashes a page with its number, so that two pages that change places change the checksum of the file. */
export function pageHash(number: number, page: Uint8Array): PageHash {
  if (numbered.byteLength !== NUMBER_BYTES + page.byteLength) numbered = new Uint8Array(NUMBER_BYTES + page.byteLength);
  new DataView(numbered.buffer).setUint32(0, number);
  numbered.set(page, NUMBER_BYTES);
  Bun.SHA256.hash(numbered, sha);
  return { high: shaView.getUint32(0), low: shaView.getUint32(NUMBER_BYTES) };
}

const HALF_DIGITS = 8;

export const hashText = ({ high, low }: PageHash): string =>
  high.toString(16).padStart(HALF_DIGITS, "0") + low.toString(16).padStart(HALF_DIGITS, "0");

/** Sets `target` to its difference from `base`, or to what differs from `base` by it. */
export function applyDifference(target: Uint8Array, base: Uint8Array): void {
  const isAligned = target.byteOffset % NUMBER_BYTES === 0 && base.byteOffset % NUMBER_BYTES === 0;
  if (!isAligned || target.byteLength % NUMBER_BYTES !== 0) {
    for (let index = 0; index < target.byteLength; index++) target[index] = (target[index] ?? 0) ^ (base[index] ?? 0);
    return;
  }
  const words = new Int32Array(target.buffer, target.byteOffset, target.byteLength / NUMBER_BYTES);
  const others = new Int32Array(base.buffer, base.byteOffset, words.length);
  for (let index = 0; index < words.length; index++) words[index] = (words[index] ?? 0) ^ (others[index] ?? 0);
}

/**
 * The hashes of all pages of a file, and its checksum: the exclusive or of them. A page that was never written counts as zeros,
 * which is what a restored file has there.
 */
export class PageHashes {
  readonly pageBytes: number;
  #words: Uint32Array<ArrayBuffer>;
  #count = 0;
  #high = 0;
  #low = 0;

  constructor(pageBytes: number, words: Uint32Array<ArrayBuffer> = new Uint32Array(0)) {
    this.pageBytes = pageBytes;
    this.#words = words;
    this.#count = words.length / 2;
    for (let index = 0; index < words.length; index += 2) this.#toggle(index);
  }

  /** Makes a table of a file whose pages will all be set. */
  static blank(pageBytes: number, count: number): PageHashes {
    return new PageHashes(pageBytes, new Uint32Array(count * 2));
  }

  /** Number of pages. */
  get count(): number {
    return this.#count;
  }

  get checksum(): string {
    return hashText({ high: this.#high >>> 0, low: this.#low >>> 0 });
  }

  /** The bytes to keep, valid until the next change. */
  get words(): Uint32Array<ArrayBuffer> {
    return this.#words.subarray(0, this.#count * 2);
  }

  get(page: number): PageHash {
    const index = (page - 1) * 2;
    return { high: this.#words[index] ?? 0, low: this.#words[index + 1] ?? 0 };
  }

  set(page: number, { high, low }: PageHash): void {
    const index = (page - 1) * 2;
    this.#toggle(index);
    this.#words[index] = high;
    this.#words[index + 1] = low;
    this.#toggle(index);
  }

  /** Sets the number of pages. New ones are zeros. */
  resize(count: number): void {
    for (let index = count * 2; index < this.#count * 2; index += 2) {
      this.#toggle(index);
      this.#words[index] = 0;
      this.#words[index + 1] = 0;
    }
    if (count * 2 > this.#words.length) {
      const grown = new Uint32Array(Math.max(count * 2, this.#words.length * 2));
      grown.set(this.#words);
      this.#words = grown;
    }
    const zeros = new Uint8Array(this.pageBytes);
    for (let page = this.#count + 1; page <= count; page++) this.set(page, pageHash(page, zeros));
    this.#count = count;
  }

  #toggle(index: number): void {
    this.#high ^= this.#words[index] ?? 0;
    this.#low ^= this.#words[index + 1] ?? 0;
  }
}
