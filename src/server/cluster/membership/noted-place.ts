import fs from "node:fs";
import type { Place } from "../protocol/statements.ts";

const SLOT_BYTES = 256;
const SLOTS = 2;
const HASH_LENGTH = 16;
const OWNER_ONLY = 0o600;

interface Noted {
  history: number;
  place: Place;
}

/**
 * File of one node with the last place that it knows to be acknowledged. Each note is in the file when `write` returns, so that a
 * kill does not undo it; a sync follows in another thread. Two slots take turns: a power cut leaves one of them whole.
 */
export class NotedPlace {
  readonly #descriptor: number;
  readonly #slot = Buffer.alloc(SLOT_BYTES);
  #count = 0;
  #isSyncing = false;
  #isDirty = false;
  #isClosed = false;
  #noted: Noted = { history: 0, place: { position: 0, nonce: "" } };

  /** Opens the file, or makes it. Its directory must exist. */
  constructor(path: string) {
    this.#descriptor = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, OWNER_ONLY);
    for (let index = 0; index < SLOTS; index++) {
      const read = this.#read(index);
      if (read === null || read.count <= this.#count) continue;
      this.#count = read.count;
      this.#noted = read.noted;
    }
  }

  /** The last note; the start of the log where there is none. */
  get noted(): Noted {
    return this.#noted;
  }

  write(history: number, place: Place): void {
    this.#noted = { history, place };
    this.#count += 1;
    const text = JSON.stringify([this.#count, history, place.position, place.nonce]);
    this.#slot.fill(0).write(hashOf(text) + text);
    fs.writeSync(this.#descriptor, this.#slot, 0, SLOT_BYTES, (this.#count % SLOTS) * SLOT_BYTES);
    this.#isDirty = true;
    this.#sync();
  }

  close(): void {
    this.#isClosed = true;
    if (!this.#isSyncing) fs.closeSync(this.#descriptor);
  }

  #sync(): void {
    if (this.#isSyncing || !this.#isDirty) return;
    this.#isSyncing = true;
    this.#isDirty = false;
    // A sync that fails takes nothing from what a kill leaves, and the next one tries again.
    fs.fdatasync(this.#descriptor, () => {
      this.#isSyncing = false;
      if (this.#isClosed) fs.closeSync(this.#descriptor);
      else this.#sync();
    });
  }

  #read(index: number): { count: number; noted: Noted } | null {
    const bytes = fs.readSync(this.#descriptor, this.#slot, 0, SLOT_BYTES, index * SLOT_BYTES);
    const text = this.#slot.toString("utf8", 0, bytes).replace(/\0+$/, "");
    const content = text.slice(HASH_LENGTH);
    if (text.length <= HASH_LENGTH || hashOf(content) !== text.slice(0, HASH_LENGTH)) return null;
    // Its hash says that `write` has made it.
    const [count, history, position, nonce] = JSON.parse(content) as [number, number, number, string];
    return { count, noted: { history, place: { position, nonce } } };
  }
}

const hashOf = (text: string): string => Bun.hash.xxHash64(text).toString(16).padStart(HASH_LENGTH, "0");
