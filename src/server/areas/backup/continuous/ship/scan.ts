import { closeSync, existsSync, openSync, rmSync, writeSync } from "node:fs";
import type { CommitFrames } from "../../../../db/capture/commit-frames.ts";
import { BackupError } from "../../types.ts";
import { stampOf } from "../capture/capture.ts";
import type { FileStamp } from "../capture/records.ts";
import { ContainerWriter, type Span } from "../format/container.ts";
import type { Position } from "../format/entries.ts";
import { type CopyDescription, FORMAT, FORMAT_VERSION } from "../format/manifest.ts";
import { hashText, PageHashes, pageHash } from "../format/pages.ts";
import { COPY_BLOCK_BYTES, COPY_IN_SEGMENT_BYTES_MAX, ZSTD_LEVEL } from "../limits.ts";
import { type Snapshot, takeSnapshot } from "./snapshot.ts";

const SNAPSHOTS_MAX = 5;

/** A full copy in a temporary file, for an object of its own. */
export interface CopyFile {
  path: string;
  bytes: number;
  sha256: string;
}

export interface Scanned {
  /** Commit that the file holds; number 0: it has no commit row, or nothing was committed. */
  row: (Position & { file: string }) | null;
  commitPage: number;
  pageBytes: number;
  pages: number;
  /** The closed file that was read; null: somebody has it open, or changed it meanwhile. */
  stamp: FileStamp | null;
  found:
    | { kind: "equal" }
    /** Pages that differ from what was known. */
    | { kind: "changed"; changed: CommitFrames }
    /** Every page. */
    | { kind: "full"; changed: CommitFrames }
    | { kind: "copy"; copy: CopyFile; hashes: PageHashes }
    | { kind: "read"; hashes: PageHashes };
}

export interface ScanOptions {
  file: string;
  /** Identifies the file in the description of a copy; the commit row's id, if there is one, goes before it. */
  id: string;
  path: string;
  /** Page hashes of the stored state; null: none, so every page is copied. */
  known: PageHashes | null;
  /** Path to which a large copy is written. */
  temporary: string;
  /** Position of a file without commit row. */
  position: Position;
  /** `copy`: every page goes to a file, whatever is known. `confirm`: only the hashes are wanted. */
  purpose: "compare" | "copy" | "confirm";
}

/** Compares a file with what is known of it, or copies it. Errors: those of `takeSnapshot`, and of the disk. */
export function scanFile(options: ScanOptions): Scanned {
  for (let attempt = 0; attempt < SNAPSHOTS_MAX; attempt++) {
    const stamp = closedStamp(options.file);
    const snapshot = takeSnapshot(options.file);
    try {
      const found = foundIn(snapshot, options);
      if (!snapshot.isIntact()) continue;
      const { row, commitPage, pageBytes, pages } = snapshot;
      return { row, commitPage, pageBytes, pages, found, stamp };
    } finally {
      snapshot.close();
    }
  }
  throw new BackupError(`${options.file} could not be copied: its WAL is restarted again and again`);
}

/** Returns the stamp of a file that has no WAL; null: it has one. */
function closedStamp(file: string): FileStamp | null {
  return existsSync(`${file}-wal`) ? null : stampOf(file);
}

function foundIn(snapshot: Snapshot, options: ScanOptions): Scanned["found"] {
  const { pageBytes, pages: count } = snapshot;
  const { known, purpose } = options;
  if (purpose === "copy") return copyOf(snapshot, options);
  if (purpose === "confirm") return { kind: "read", hashes: hashesOf(snapshot) };
  if (known !== null && known.pageBytes === pageBytes) {
    const pages = differing(snapshot, known);
    if (pages !== null) {
      if (pages.size === 0 && count === known.count) return { kind: "equal" };
      return { kind: "changed", changed: { pages, count } };
    }
  }
  if (count * pageBytes > COPY_IN_SEGMENT_BYTES_MAX) return copyOf(snapshot, options);
  const pages = new Map<number, Uint8Array>();
  for (const [number, page] of pagesOf(snapshot)) pages.set(number, page);
  return { kind: "full", changed: { pages, count } };
}

/** Reads the hashes of all pages. */
export function hashesOf(snapshot: Snapshot): PageHashes {
  const hashes = PageHashes.blank(snapshot.pageBytes, snapshot.pages);
  for (const [number, page] of pagesOf(snapshot)) hashes.set(number, pageHash(number, page));
  return hashes;
}

/** Returns the pages that are not as they were; null: more than a segment should have. */
function differing(snapshot: Snapshot, known: PageHashes): Map<number, Uint8Array> | null {
  const pages = new Map<number, Uint8Array>();
  for (const [number, page] of pagesOf(snapshot)) {
    if (number <= known.count && hashText(known.get(number)) === hashText(pageHash(number, page))) continue;
    pages.set(number, page.slice());
    if (pages.size * snapshot.pageBytes > COPY_IN_SEGMENT_BYTES_MAX) return null;
  }
  return pages;
}

function* blocksOf(snapshot: Snapshot): Generator<{ first: number; block: Uint8Array<ArrayBuffer> }> {
  const { pageBytes, pages } = snapshot;
  const perBlock = Math.max(1, Math.floor(COPY_BLOCK_BYTES / pageBytes));
  for (let first = 1; first <= pages; first += perBlock) {
    yield { first, block: snapshot.read(first, Math.min(perBlock, pages - first + 1)) };
  }
}

function* pagesOf(snapshot: Snapshot): Generator<[number: number, page: Uint8Array]> {
  const { pageBytes } = snapshot;
  for (const { first, block } of blocksOf(snapshot)) {
    for (let index = 0; index * pageBytes < block.byteLength; index++) {
      yield [first + index, block.subarray(index * pageBytes, (index + 1) * pageBytes)];
    }
  }
}

/** Writes every page to a temporary file, compressed. */
function copyOf(snapshot: Snapshot, options: ScanOptions): Scanned["found"] {
  const { pageBytes, pages } = snapshot;
  const hashes = PageHashes.blank(pageBytes, pages);
  rmSync(options.temporary, { force: true });
  const descriptor = openSync(options.temporary, "wx", 0o600);
  try {
    const container = new ContainerWriter((bytes) => {
      for (let written = 0; written < bytes.byteLength; ) written += writeSync(descriptor, bytes, written);
    });
    const blocks: Span[] = [];
    for (const { first, block } of blocksOf(snapshot)) {
      blocks.push(container.add(Bun.zstdCompressSync(block, { level: ZSTD_LEVEL })));
      for (let index = 0; index * pageBytes < block.byteLength; index++) {
        hashes.set(first + index, pageHash(first + index, block.subarray(index * pageBytes, (index + 1) * pageBytes)));
      }
    }
    const { number, nonce, at, place } = snapshot.row ?? options.position;
    const description: CopyDescription = {
      format: FORMAT,
      version: FORMAT_VERSION,
      id: snapshot.row?.file || options.id,
      path: options.path,
      number,
      nonce,
      at,
      place,
      pageBytes,
      pages,
      checksum: hashes.checksum,
      pagesPerBlock: Math.max(1, Math.floor(COPY_BLOCK_BYTES / pageBytes)),
      blocks,
    };
    return { kind: "copy", copy: { path: options.temporary, ...container.finish(description) }, hashes };
  } finally {
    closeSync(descriptor);
  }
}
