import { Database } from "bun:sqlite";
import { closeSync, fdatasyncSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { BackupError } from "../../types.ts";
import type { LeftFrames } from "../capture/records.ts";
import type { Position } from "../format/entries.ts";
import { SNAPSHOT_BUSY_MS, SNAPSHOT_TRIES_MAX } from "../limits.ts";

const COMMIT_ROW = 'SELECT "number", "nonce", "at", "place", "file" FROM "_platform_commit"';
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The index of a WAL begins with two equal copies of its header. */
const INDEX_HEADER_BYTES = 48;
const FRAME_COUNT_OFFSET = 16;
const SALTS = { start: 32, end: 40 } as const;
const WAL_SALTS = { start: 16, end: 24 } as const;

/** Frames of one piece. */
const FRAMES_AT_ONCE = 256;
/** 48 of the 64 bits of the salts make an exact number. */
const SALTS_SKIPPED_DIGITS = 4;
/** Bytes of a WAL whose commits are read one by one. */
const LEFT_MAX_BYTES = 64 * 1024 * 1024;

/** A file as of one commit, page by page, while others write to it. */
export interface Snapshot {
  readonly pageBytes: number;
  readonly pages: number;
  /** The commit row; null: the file has none. */
  readonly row: (Position & { file: string }) | null;
  /** Page of the commit row; 0: there is none. */
  readonly commitPage: number;
  /** Reads `count` pages from page `first` on, into a new buffer. */
  read(first: number, count: number): Uint8Array<ArrayBuffer>;
  syncWal(): void;
  /** Reads the frames of the WAL, in pieces. */
  frames(): { first: number; salts: number; content: Uint8Array<ArrayBuffer> }[];
  /** Whether everything that was read is of this snapshot. False: take another one. */
  isIntact(): boolean;
  close(): void;
}

interface WalState {
  frames: number;
  salts: string;
}

/**
 * Takes a snapshot of a database. A transaction that reads keeps checkpoints from changing pages of the database file that it
 * sees, so each page is its last frame in the WAL before the transaction, or else the page of the file. How far the WAL belongs to
 * it is known only if nothing was committed while it began; otherwise it is taken again. Errors: BackupError when others commit
 * too fast; those of SQLite.
 */
export function takeSnapshot(path: string): Snapshot {
  const hasWal = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  // A connection that may write removes, as the last one, the empty WAL that it has made.
  const sqlite = new Database(path, hasWal ? { readonly: true } : { readwrite: true, create: false });
  const descriptors: number[] = [];
  try {
    // Another process may be moving what a crash has left in the WAL.
    sqlite.run(`PRAGMA busy_timeout = ${SNAPSHOT_BUSY_MS}`);
    sqlite.run("PRAGMA query_only = ON");
    sqlite.query("SELECT count(*) FROM sqlite_schema").get();
    const open = (name: string): number | null => {
      if (statSync(name, { throwIfNoEntry: false }) === undefined) return null;
      const descriptor = openSync(name, "r");
      descriptors.push(descriptor);
      return descriptor;
    };
    const [file, wal, index] = [open(path), open(`${path}-wal`), open(`${path}-shm`)];
    if (file === null) throw new BackupError(`${path} is gone`);
    const state = settle(sqlite, () => walStateOf(index));
    return new OpenSnapshot(sqlite, { file, wal, state, descriptors });
  } catch (cause) {
    sqlite.close();
    for (const descriptor of descriptors) closeSync(descriptor);
    throw cause;
  }
}

/**
 * Reads the commits in the WAL of a file that a crash has left, after a sync of the WAL: what is stored must be on the disk. Empty:
 * there are none, they are too many, or another process has begun to use the file. Errors: those of `takeSnapshot`.
 */
export function leftIn(path: string): { left: LeftFrames; content: Uint8Array<ArrayBuffer> }[] {
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? Number.POSITIVE_INFINITY) > LEFT_MAX_BYTES)
    return [];
  const snapshot = takeSnapshot(path);
  try {
    const { row, commitPage: page, pageBytes } = snapshot;
    if (row === null || row.number === 0) return [];
    snapshot.syncWal();
    const { file, number, nonce } = row;
    const pieces = snapshot.frames();
    if (!snapshot.isIntact()) return [];
    return pieces.map(({ content, ...frames }) => ({
      left: { file, number, nonce, page, pageBytes, ...frames },
      content,
    }));
  } finally {
    snapshot.close();
  }
}

/** Begins a transaction between two commits. */
function settle(sqlite: Database, look: () => WalState): WalState {
  for (let attempt = 0; attempt < SNAPSHOT_TRIES_MAX; attempt++) {
    const before = look();
    sqlite.run("BEGIN");
    sqlite.query("SELECT count(*) FROM sqlite_schema").get();
    const after = look();
    if (before.frames >= 0 && before.frames === after.frames && before.salts === after.salts) return after;
    sqlite.run("ROLLBACK");
    Bun.sleepSync(1);
  }
  throw new BackupError(`${sqlite.filename} is written too fast for a snapshot`);
}

/** Reads how long a WAL is. frames -1: its index is being changed. */
function walStateOf(index: number | null): WalState {
  if (index === null) return { frames: 0, salts: "" };
  const both = Buffer.alloc(2 * INDEX_HEADER_BYTES);
  const got = readSync(index, both, 0, both.byteLength, 0);
  if (got < both.byteLength) return { frames: 0, salts: "" };
  const isEven = both.subarray(0, INDEX_HEADER_BYTES).equals(both.subarray(INDEX_HEADER_BYTES));
  const salts = both.toString("hex", SALTS.start, SALTS.end);
  return isEven ? { frames: both.readUInt32LE(FRAME_COUNT_OFFSET), salts } : { frames: -1, salts };
}

class OpenSnapshot implements Snapshot {
  readonly pageBytes: number;
  readonly pages: number;
  readonly row: (Position & { file: string }) | null;
  readonly commitPage: number;
  readonly #sqlite: Database;
  readonly #file: number;
  readonly #wal: number | null;
  readonly #descriptors: readonly number[];
  readonly #salts: string;
  readonly #state: WalState;
  /** The last frame of each page in the WAL. */
  readonly #frames = new Map<number, number>();

  constructor(
    sqlite: Database,
    source: { file: number; wal: number | null; state: WalState; descriptors: readonly number[] },
  ) {
    this.#sqlite = sqlite;
    this.#file = source.file;
    this.#wal = source.wal;
    this.#state = source.state;
    this.#descriptors = source.descriptors;
    this.#salts = this.#walSalts();
    this.pages = sqlite.query<{ page_count: number }, []>("PRAGMA page_count").get()?.page_count ?? 0;
    this.pageBytes = sqlite.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
    this.commitPage =
      sqlite
        .query<{ page: number }, []>(`SELECT rootpage AS page FROM sqlite_schema WHERE name = '_platform_commit'`)
        .get()?.page ?? 0;
    this.row = this.commitPage === 0 ? null : sqlite.query<Position & { file: string }, []>(COMMIT_ROW).get();
    this.#mapFrames(source.state);
  }

  read(first: number, count: number): Uint8Array<ArrayBuffer> {
    const pages = new Uint8Array(count * this.pageBytes);
    readSync(this.#file, pages, 0, pages.byteLength, (first - 1) * this.pageBytes);
    if (this.#wal === null || this.#frames.size === 0) return pages;
    for (let index = 0; index < count; index++) {
      const frame = this.#frames.get(first + index);
      if (frame === undefined) continue;
      const offset = WAL_HEADER_BYTES + frame * (FRAME_HEADER_BYTES + this.pageBytes) + FRAME_HEADER_BYTES;
      readSync(this.#wal, pages, index * this.pageBytes, this.pageBytes, offset);
    }
    return pages;
  }

  frames(): { first: number; salts: number; content: Uint8Array<ArrayBuffer> }[] {
    const { frames, salts } = this.#state;
    const pieces: { first: number; salts: number; content: Uint8Array<ArrayBuffer> }[] = [];
    if (this.#wal === null || salts !== this.#salts) return pieces;
    const frameBytes = FRAME_HEADER_BYTES + this.pageBytes;
    for (let first = 0; first < frames; first += FRAMES_AT_ONCE) {
      const content = new Uint8Array(Math.min(FRAMES_AT_ONCE, frames - first) * frameBytes);
      readSync(this.#wal, content, 0, content.byteLength, WAL_HEADER_BYTES + first * frameBytes);
      pieces.push({ first, salts: Number.parseInt(salts.slice(SALTS_SKIPPED_DIGITS), 16), content });
    }
    return pieces;
  }

  syncWal(): void {
    if (this.#wal !== null) fdatasyncSync(this.#wal);
  }

  isIntact(): boolean {
    return this.#frames.size === 0 || this.#walSalts() === this.#salts;
  }

  close(): void {
    this.#sqlite.close();
    // Last: closing a descriptor drops SQLite's locks.
    for (const descriptor of this.#descriptors) closeSync(descriptor);
  }

  #mapFrames({ frames, salts }: WalState): void {
    if (this.#wal === null || frames === 0) return;
    // The WAL was restarted before the snapshot began: all of it is in the file.
    if (salts !== this.#salts) return;
    const header = Buffer.alloc(FRAME_HEADER_BYTES);
    for (let frame = 0; frame < frames; frame++) {
      readSync(
        this.#wal,
        header,
        0,
        header.byteLength,
        WAL_HEADER_BYTES + frame * (FRAME_HEADER_BYTES + this.pageBytes),
      );
      this.#frames.set(header.readUInt32BE(0), frame);
    }
  }

  #walSalts(): string {
    if (this.#wal === null || fstatSync(this.#wal).size < WAL_HEADER_BYTES) return "";
    const header = Buffer.alloc(WAL_HEADER_BYTES);
    readSync(this.#wal, header, 0, header.byteLength, 0);
    return header.toString("hex", WAL_SALTS.start, WAL_SALTS.end);
  }
}
