import { closeSync, fdatasyncSync, ftruncateSync, mkdirSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { BackupError } from "../../types.ts";
import type { Archive } from "../format/archive.ts";
import { type Container, openContainer } from "../format/container.ts";
import { decodeEntries, type Entry } from "../format/entries.ts";
import { type CopyDescription, type FullCopy, requireVersion, type StoredFile } from "../format/manifest.ts";
import { applyDifference, hashText, PageHashes, pageHash } from "../format/pages.ts";
import type { Store } from "../store/store.ts";
import { applySources } from "./sources.ts";

/** A file that is being restored. */
interface Target {
  file: StoredFile;
  base: FullCopy;
  /** The last place that is wanted; null: the newest. */
  place: number | null;
  path: string;
  /** null: the base has not been written. */
  hashes: PageHashes | null;
  /** Hash of the last entry; null: entries had made the state of the base, which is the first. */
  entry: string | null;
  /** Number of the commit that it holds. */
  number: number;
}

/** A database that was restored. */
export interface RestoredDatabase {
  file: StoredFile;
  path: string;
  number: number;
  hashes: PageHashes;
}

export interface DatabasesToRestore {
  store: Store;
  archive: Archive;
  files: readonly StoredFile[];
  /** Returns the last place of the moment; null: the newest. */
  placeOf: (file: StoredFile) => number | null;
  /** Folder to which the files are written. */
  folder: string;
  signal: AbortSignal;
  onProgress: (bytes: number) => void;
  /** Called with the bytes of objects that will be read. */
  onPlanned?: (bytes: number) => void;
}

/** Returns the files that a moment has. Errors: BackupError for one with a gap there. */
export function filesAt(archive: Archive, place: number | null): StoredFile[] {
  const present = archive.manifest.files.filter(({ fulls, removed }) => {
    if (fulls.length === 0) return false;
    if (place === null) return removed === null;
    return fulls.some((copy) => copy.place <= place) && (removed === null || removed.place > place);
  });
  // Of two files that had the same name, the later one.
  const byPath = new Map<string, StoredFile>();
  for (const file of present) {
    const other = byPath.get(file.path);
    if (other === undefined || baseOf(other, place).place < baseOf(file, place).place) byPath.set(file.path, file);
  }
  return [...byPath.values()];
}

/**
 * Errors: BackupError if the moment lies in a gap of one of the files. `files` null: of any, since a file of which nothing is stored at
 * that moment may have been there.
 */
export function requireNoGap({ manifest }: Archive, files: readonly StoredFile[] | null, place: number | null): void {
  if (place === null) return;
  const ids = files === null ? null : new Set(files.flatMap(({ id, formerIds }) => [id, ...formerIds]));
  const gap = manifest.gaps.find(
    ({ id, fromPlace, toPlace }) => (ids?.has(id) ?? true) && fromPlace < place && place < toPlace,
  );
  if (gap === undefined) return;
  const [from, to] = [gap.from, gap.to].map((at) => new Date(at).toISOString());
  throw new BackupError(
    `${gap.file} cannot be restored as of that moment: what happened from ${from} to ${to} is missing`,
  );
}

/** Returns the copy from which a file is restored. */
function baseOf({ fulls, path }: StoredFile, place: number | null): FullCopy {
  const base = fulls.findLast((copy) => place === null || copy.place <= place);
  if (base === undefined) throw new BackupError(`${path} has no copy of that moment`);
  return base;
}

/** Restores databases, and compares each hash on the way. Errors: BackupError if anything is missing or damaged. */
export async function restoreDatabases(options: DatabasesToRestore): Promise<RestoredDatabase[]> {
  const { store, archive, files, placeOf, folder, signal, onProgress, onPlanned = () => {} } = options;
  const targets = new Map<string, Target>();
  onPlanned(
    files
      .map((file) => baseOf(file, placeOf(file)))
      .reduce((sum, { isSegment, bytes }) => sum + (isSegment ? 0 : bytes), 0),
  );
  for (const file of files) {
    signal.throwIfAborted();
    const path = join(folder, `${file.path}.db`);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, "wx", 0o600));
    const place = placeOf(file);
    const base = baseOf(file, place);
    const target: Target = { file, base, place, path, hashes: null, entry: null, number: base.number };
    for (const id of [file.id, ...file.formerIds]) targets.set(id, target);
    if (!target.base.isSegment) onProgress(await writeCopy(store, target, `${path}.copy`));
  }
  await applySources({ store, manifest: archive.manifest, targets, apply: applyBlock, onProgress, onPlanned, signal });
  return [...new Set(targets.values())].map(finish);
}

/** Writes a full copy that is an object of its own. Returns its bytes. */
async function writeCopy(store: Store, target: Target, temporary: string): Promise<number> {
  const { base } = target;
  const name = `${store.name} ${base.key}`;
  if (!(await store.fetch(base.key, temporary))) throw new BackupError(`${name} is missing`);
  const source = openSync(temporary, "r");
  try {
    const copy = openContainer<CopyDescription>(name, source);
    if (copy.sha256 !== base.sha256) throw new BackupError(`${name} is not the one that the manifest names`);
    requireVersion(name, copy.description);
    target.hashes = writePages(name, copy, target);
    return base.bytes;
  } finally {
    closeSync(source);
    rmSync(temporary, { force: true });
  }
}

/** Writes the pages of a copy. Returns their hashes. */
function writePages(name: string, copy: Container<CopyDescription>, { file, path }: Target): PageHashes {
  const { pageBytes, pages, pagesPerBlock, blocks, checksum } = copy.description;
  const hashes = PageHashes.blank(pageBytes, pages);
  const descriptor = openSync(path, "r+");
  try {
    for (const [index, span] of blocks.entries()) {
      const block = new Uint8Array(Bun.zstdDecompressSync(copy.block(span)));
      const first = index * pagesPerBlock + 1;
      for (let page = 0; page * pageBytes < block.byteLength; page++) {
        hashes.set(first + page, pageHash(first + page, block.subarray(page * pageBytes, (page + 1) * pageBytes)));
      }
      writeAll(descriptor, block, (first - 1) * pageBytes);
    }
    ftruncateSync(descriptor, pages * pageBytes);
  } finally {
    closeSync(descriptor);
  }
  if (hashes.checksum === checksum) return hashes;
  throw new BackupError(`${name} is damaged: the pages of ${file.path} are not those of its checksum`);
}

/** Applies the entries of a block that belong to the moment. */
function applyBlock(name: string, block: Uint8Array<ArrayBuffer>, target: Target): void {
  const descriptor = openSync(target.path, "r+");
  try {
    for (const entry of decodeEntries(name, block)) {
      if (isWanted(entry, target)) apply(name, entry, { target, descriptor });
    }
  } finally {
    closeSync(descriptor);
  }
}

function isWanted({ head }: Entry, { base, hashes, place }: Target): boolean {
  if (place !== null && head.place > place) return false;
  if (hashes === null) return head.kind === "full" && head.place === base.place && head.number === base.number;
  return head.place > base.place;
}

/** Applies an entry to a file. Errors: BackupError if it does not follow the state of the file. */
function apply(
  name: string,
  { head, pages, hash }: Entry & { hash: string },
  { target, descriptor }: { target: Target; descriptor: number },
): void {
  const { pageBytes } = head;
  const wrong = (what: string) =>
    new BackupError(`${name} is damaged: ${what} of ${target.file.path} at commit ${head.number}`);
  target.hashes ??= PageHashes.blank(pageBytes, 0);
  const { hashes } = target;
  if (head.kind !== "full") {
    if (head.before !== hashes.checksum) throw wrong("the checksum before an entry is not that");
    if (target.entry !== null && head.previous !== target.entry) throw wrong("an entry does not follow the last one");
  }
  // A page that goes and comes back is zeros until it is written.
  const least = head.merged?.least ?? head.pages;
  if (least < hashes.count) {
    hashes.resize(least);
    ftruncateSync(descriptor, least * pageBytes);
  }
  hashes.resize(head.pages);
  ftruncateSync(descriptor, head.pages * pageBytes);
  for (const [index, [page, base, result]] of head.changed.entries()) {
    const content = pages.subarray(index * pageBytes, (index + 1) * pageBytes);
    if (base !== null) {
      if (hashText(hashes.get(page)) !== base) throw wrong(`page ${page} is not the base of a difference`);
      const former = new Uint8Array(pageBytes);
      readSync(descriptor, former, 0, pageBytes, (page - 1) * pageBytes);
      applyDifference(content, former);
    }
    const made = pageHash(page, content);
    if (hashText(made) !== result) throw wrong(`page ${page} has the wrong hash`);
    hashes.set(page, made);
    writeAll(descriptor, content, (page - 1) * pageBytes);
  }
  if (hashes.checksum !== head.after) throw wrong("the checksum after an entry is not that");
  target.entry = head.merged?.last ?? hash;
  target.number = head.number;
}

function finish({ file, hashes, path, place, number }: Target): RestoredDatabase {
  const last = file.removed === null && place === null ? file.last.checksum : null;
  if (hashes === null || (last !== null && hashes.checksum !== last)) {
    throw new BackupError(`${file.path} could not be restored: entries of it are missing`);
  }
  const descriptor = openSync(path, "r+");
  try {
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return { file, path, number, hashes };
}

function writeAll(descriptor: number, bytes: Uint8Array, offset: number): void {
  for (let written = 0; written < bytes.byteLength; ) {
    written += writeSync(descriptor, bytes, written, bytes.byteLength - written, offset + written);
  }
}
