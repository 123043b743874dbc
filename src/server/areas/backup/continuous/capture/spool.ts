import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync, writevSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, Millis } from "../../../../../kernel/clock.ts";
import { CONTINUOUS_FOLDER } from "../../layout.ts";
import { DISK_FREE_MIN_BYTES } from "../limits.ts";
import { encodeRecord, type SpoolRecord } from "./records.ts";

/** A complete file of records. */
export interface SpooledFile {
  path: string;
  bytes: number;
  /** Time of its first record. */
  firstAt: Millis;
  /** Whether records before it were not written: every file has to be compared. */
  isAfterLoss: boolean;
}

/**
 * Keeps what was captured in files of the data directory, so that a slow store takes no memory, until it has been stored. They need
 * no sync: what a failure of power takes is found by comparing the databases. Where they would take too much of the disk, nothing
 * more is written, until there is room.
 */
export class Spool {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #bytesMax: number;
  #number = 0;
  #descriptor: number | null = null;
  #current: SpooledFile | null = null;
  #waitingBytes = 0;
  #isLost = false;
  #isAfterLoss = false;

  constructor(options: { dataDirectory: string; clock: Clock; bytesMax: number }) {
    this.#folder = join(options.dataDirectory, CONTINUOUS_FOLDER, "spool");
    this.#clock = options.clock;
    this.#bytesMax = options.bytesMax;
    // What a killed server has left is in its databases.
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Whether records are dropped for lack of room. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Time of the first record of the current file; null: it has none. */
  get firstAt(): Millis | null {
    return this.#current?.firstAt ?? null;
  }

  /** Bytes of all files that have not been stored. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  add(record: SpoolRecord, content: Uint8Array | null = null): void {
    if (this.#isLost) return;
    const parts = encodeRecord(record, content);
    const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
    if (this.#waitingBytes + bytes > this.#bytesMax) {
      this.#isLost = true;
      return;
    }
    try {
      const current = this.#begin();
      this.#write(parts, bytes);
      current.bytes += bytes;
      this.#waitingBytes += bytes;
    } catch {
      // The disk is full. The unfinished record is behind the bytes that count.
      this.#isLost = true;
    }
  }

  /** Ends the current file, and returns it; null: there is nothing. Writes again once there is room. */
  rotate(): SpooledFile | null {
    const current = this.#current;
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
    this.#current = null;
    if (this.#isLost && this.#waitingBytes < this.#bytesMax / 2 && this.#hasRoom()) {
      this.#isLost = false;
      this.#isAfterLoss = true;
      this.#begin();
    }
    return current;
  }

  /** Removes a file that has been stored. */
  done({ path, bytes }: SpooledFile): void {
    this.#waitingBytes -= bytes;
    // In another thread, since the system takes its time for a large one. The next start removes what is left.
    void rm(path, { force: true }).catch(() => {});
  }

  /** Stops writing where the disk has little room left. */
  watchRoom(): void {
    if (!this.#hasRoom()) this.#isLost = true;
  }

  #begin(): SpooledFile {
    if (this.#current !== null) return this.#current;
    const path = join(this.#folder, String(++this.#number));
    this.#descriptor = openSync(path, "wx", 0o600);
    this.#current = { path, bytes: 0, firstAt: this.#clock.now(), isAfterLoss: this.#isAfterLoss };
    this.#isAfterLoss = false;
    return this.#current;
  }

  #write(parts: Uint8Array[], bytes: number): void {
    if (this.#descriptor === null) return;
    const got = writevSync(this.#descriptor, parts);
    // The system may take a part of it, before it fails for lack of room.
    if (got < bytes) this.#writeRest(this.#descriptor, Buffer.concat(parts).subarray(got));
  }

  #writeRest(descriptor: number, rest: Uint8Array): void {
    for (let written = 0; written < rest.byteLength; ) written += writeSync(descriptor, rest, written);
  }

  #hasRoom(): boolean {
    const { bavail, bsize } = statfsSync(this.#folder);
    return bavail * bsize >= DISK_FREE_MIN_BYTES;
  }
}
