import { BackupError } from "../../types.ts";
import type { Store } from "../store/store.ts";
import { readContainer } from "./container.ts";
import {
  MANIFEST_KEY,
  type Manifest,
  readManifest,
  requireVersion,
  type SegmentDescription,
  type SegmentFacts,
  type SegmentIndexDescription,
  type StoredFile,
  segmentKey,
} from "./manifest.ts";

/** Contents of a store, by its manifest and the segments behind it. */
export class Archive {
  readonly manifest: Manifest;
  readonly #byId = new Map<string, StoredFile>();
  readonly #byPath = new Map<string, StoredFile>();

  constructor(manifest: Manifest) {
    this.manifest = manifest;
    for (const file of manifest.files) this.#know(file);
  }

  /** Returns a file by its id; undefined: it never was there. */
  byId(id: string): StoredFile | undefined {
    return this.#byId.get(id);
  }

  /** Returns the file that has this path now. */
  byPath(path: string): StoredFile | undefined {
    return this.#byPath.get(path);
  }

  get lastSegment(): SegmentFacts | undefined {
    return this.manifest.segments.at(-1);
  }

  /** Adds a segment that is in the store. */
  apply(facts: SegmentFacts, description: SegmentDescription): void {
    const { manifest } = this;
    for (const { id, to } of description.renamed) {
      const file = this.#byId.get(id);
      if (file === undefined) continue;
      file.formerIds.push(id);
      file.id = to;
      this.#know(file);
    }
    // Entries of a segment follow its copies.
    for (const { copy, isBase, pages, checksum, ...of } of description.copies) {
      const file = this.#fileOf(of, of.pageBytes);
      file.fulls.push(copy);
      // One that was due is of an earlier state than the one that a comparison has made.
      file.fulls.sort((one, other) => one.place - other.place);
      file.bytes += copy.bytes;
      file.entryBytes = 0;
      const { number, nonce, at, place } = copy;
      if (isBase) file.last = { number, nonce, at, place, pages, checksum, entry: copy.sha256 };
    }
    for (const part of description.parts) {
      const size = part.entries.reduce((sum, { pages, pageBytes }) => Math.max(sum, pages * pageBytes), 0);
      const share = Math.max(1, part.entries.length);
      for (const { kind, after, hash, pages, pageBytes, ...position } of part.entries) {
        const file = this.#fileOf(part, pageBytes);
        file.pageBytes = pageBytes;
        file.last = { ...position, pages, checksum: after, entry: hash };
        file.bytes += part.length / share;
        file.entryBytes = kind === "full" ? 0 : file.entryBytes + part.length / share;
        const copy = {
          ...position,
          key: facts.key,
          sha256: facts.sha256,
          isSegment: true,
          bytes: Math.min(part.length, size),
        };
        if (kind === "full") file.fulls.push(copy);
      }
    }
    for (const { id, at, place } of description.removed) {
      const file = this.#byId.get(id);
      if (file === undefined || file.removed !== null) continue;
      file.removed = { at, place };
      if (this.#byPath.get(file.path) === file) this.#byPath.delete(file.path);
    }
    manifest.plain.push(...description.plain);
    manifest.gaps.push(...description.gaps);
    manifest.missing = description.missing;
    manifest.covered = description.covered ?? null;
    manifest.segments.push(facts);
  }

  /** Drops files, which no kept moment has. */
  drop(ids: ReadonlySet<string>): void {
    this.manifest.files = this.manifest.files.filter(({ id }) => !ids.has(id));
    for (const id of ids) this.#byId.delete(id);
  }

  #fileOf({ id, path }: { id: string; path: string }, pageBytes: number): StoredFile {
    const known = this.#byId.get(id);
    if (known !== undefined) {
      if (known.path !== path) {
        known.path = path;
        this.#know(known);
      }
      return known;
    }
    const last = { number: 0, nonce: 0, at: 0, place: 0, pages: 0, checksum: "", entry: "" };
    const file: StoredFile = {
      id,
      formerIds: [],
      path,
      pageBytes,
      fulls: [],
      last,
      entryBytes: 0,
      bytes: 0,
      removed: null,
    };
    this.manifest.files.push(file);
    this.#know(file);
    return file;
  }

  #know(file: StoredFile): void {
    for (const id of [file.id, ...file.formerIds]) this.#byId.set(id, file);
    if (file.removed === null) this.#byPath.set(file.path, file);
  }
}

/** Reads a segment; null: there is none of this key. Errors: BackupError if it is damaged, or not the one that is expected. */
export async function readSegment(store: Store, key: string, sha256: string | null) {
  const bytes = await store.read(key);
  if (bytes === null) return null;
  const name = `${store.name} ${key}`;
  const segment = readContainer<SegmentDescription>(name, bytes);
  requireVersion(name, segment.description);
  if (sha256 !== null && segment.sha256 !== sha256)
    throw new BackupError(`${name} is not the one that the manifest names`);
  return { ...segment, bytes: bytes.byteLength };
}

export type Segment = NonNullable<Awaited<ReturnType<typeof readSegment>>>;

/** Returns what a manifest says of a segment. */
export const factsOf = (key: string, { description, sha256, bytes }: Omit<Segment, "block">): SegmentFacts => ({
  counter: description.counter,
  key,
  sha256,
  bytes,
  from: description.from,
  to: description.to,
  place: description.place,
  firstPlace: description.parts
    .flatMap(({ entries }) => entries)
    .reduce((least, { place }) => Math.min(least, place), description.place),
  files: description.parts.map(({ id, entries }) => [id, entries.at(-1)?.number ?? 0]),
});

/**
 * Reads what a store has: its manifest, and the segments that were stored after it. null: there is no continuous backup. Errors:
 * BackupError if something is damaged.
 */
export async function loadArchive(store: Store): Promise<Archive | null> {
  const bytes = await store.read(MANIFEST_KEY);
  if (bytes === null) return null;
  const archive = new Archive(readManifest(`${store.name} ${MANIFEST_KEY}`, bytes));
  const { incarnation } = archive.manifest;
  for (let last = lastOf(archive.manifest); ; ) {
    const key = segmentKey(last.counter + 1, incarnation);
    const segment = await readSegment(store, key, null);
    if (segment === null) return archive;
    if (segment.description.previous !== last.sha256)
      throw new BackupError(`${store.name} ${key} does not follow its predecessor`);
    const facts = factsOf(key, segment);
    archive.apply(facts, segment.description);
    last = facts;
  }
}

/** Returns counter and hash of the last segment that a manifest knows. */
export const lastOf = ({ segments, lastIndexed }: Manifest): { counter: number; sha256: string | null } =>
  segments.at(-1) ?? lastIndexed;

/** Yields all segments of an archive in order. Errors: BackupError if an index is missing or damaged. */
export async function* segmentsOf(
  store: Store,
  { indexes, segments }: Pick<Manifest, "indexes" | "segments">,
): AsyncGenerator<SegmentFacts> {
  for (const { key, sha256 } of indexes) {
    const name = `${store.name} ${key}`;
    const bytes = await store.read(key);
    if (bytes === null) throw new BackupError(`${name} is missing`);
    const index = readContainer<SegmentIndexDescription>(name, bytes);
    if (index.sha256 !== sha256) throw new BackupError(`${name} is not the one that the manifest names`);
    requireVersion(name, index.description);
    yield* index.description.segments;
  }
  yield* segments;
}
