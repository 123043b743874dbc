import { ContainerWriter } from "../format/container.ts";
import {
  type Covered,
  FORMAT,
  FORMAT_VERSION,
  type Gap,
  type PlainVersion,
  type SegmentDescription,
  type SegmentPart,
} from "../format/manifest.ts";
import { FRAME_BYTES, ZSTD_LEVEL } from "../limits.ts";
import type { ChainEntry } from "./chain.ts";

type Described = SegmentPart["entries"][number];

/** The entries of one file: described, compressed, and those that are not compressed yet. */
interface Part {
  id: string;
  path: string;
  entries: Described[];
  frames: Uint8Array[];
  size: number;
  /** Memory whose first `waitingBytes` wait. */
  waiting: Uint8Array<ArrayBuffer>;
  waitingBytes: number;
}

/** A segment that is ready to be stored. */
export interface BuiltSegment {
  description: SegmentDescription;
  sha256: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const lastPlace = ({ entries }: Part): number => entries.at(-1)?.place ?? 0;

/** Compresses the entries that wait: a block may consist of several frames. */
function compress(part: Part): void {
  if (part.waitingBytes === 0) return;
  part.frames.push(Bun.zstdCompressSync(part.waiting.subarray(0, part.waitingBytes), { level: ZSTD_LEVEL }));
  part.waitingBytes = 0;
}

/** Copies bytes behind those that wait. */
function append(part: Part, bytes: Uint8Array): void {
  const needed = part.waitingBytes + bytes.byteLength;
  if (needed > part.waiting.byteLength) {
    const grown = new Uint8Array(Math.max(needed, 2 * part.waiting.byteLength));
    grown.set(part.waiting.subarray(0, part.waitingBytes));
    part.waiting = grown;
  }
  part.waiting.set(bytes, part.waitingBytes);
  part.waitingBytes = needed;
  part.size += bytes.byteLength;
}

const emptyPart = ({ id, path }: { id: string; path: string }): Part => ({
  id,
  path,
  entries: [],
  frames: [],
  size: 0,
  waiting: new Uint8Array(0),
  waitingBytes: 0,
});

/** Collects what goes into the next segment. */
export class SegmentBuilder {
  readonly #onEntry: (file: { id: string; path: string }, entry: ChainEntry) => void;
  readonly #parts = new Map<string, Part>();
  readonly copies: SegmentDescription["copies"] = [];
  readonly renamed: SegmentDescription["renamed"] = [];
  readonly removed: SegmentDescription["removed"] = [];
  readonly plain: PlainVersion[] = [];
  readonly gaps: Gap[] = [];
  /** Bytes of the entries. */
  bytes = 0;

  constructor(onEntry: (file: { id: string; path: string }, entry: ChainEntry) => void) {
    this.#onEntry = onEntry;
  }

  get isEmpty(): boolean {
    const { copies, renamed, removed, plain, gaps } = this;
    return this.#parts.size + copies.length + renamed.length + removed.length + plain.length + gaps.length === 0;
  }

  /** Files of which it has entries. */
  get files(): { id: string; path: string }[] {
    return [...this.#parts.values()].map(({ id, path }) => ({ id, path }));
  }

  /** Returns the ids of files with this path whose last entry is not after `place`. */
  idsOf(path: string, place: number): string[] {
    const parts = this.#parts.values().filter((part) => part.path === path && lastPlace(part) <= place);
    const copies = this.copies.filter((one) => one.path === path && one.copy.place <= place);
    return [...parts.map(({ id }) => id), ...copies.map(({ id }) => id)];
  }

  add(file: { id: string; path: string }, entry: ChainEntry): void {
    const part = this.#parts.get(file.id) ?? emptyPart(file);
    this.#parts.set(file.id, part);
    const { kind, number, nonce, at, place, after, pages, pageBytes } = entry.head;
    part.entries.push({ kind, number, nonce, at, place, after, hash: entry.hash, pages, pageBytes });
    const bytes = entry.line.byteLength + entry.pages.byteLength;
    append(part, entry.line);
    append(part, entry.pages);
    this.bytes += bytes;
    if (part.waitingBytes >= FRAME_BYTES) compress(part);
    this.#onEntry(file, entry);
  }

  build(facts: {
    counter: number;
    incarnation: string;
    previous: string | null;
    cut: { at: number; place: number };
    covered: Covered | null;
    missing: string[];
  }): BuiltSegment {
    const { counter, incarnation, previous, cut, covered, missing } = facts;
    const chunks: Uint8Array[] = [];
    const container = new ContainerWriter((bytes) => chunks.push(bytes));
    const parts = [...this.#parts.values()].map((part): SegmentPart => {
      compress(part);
      const { id, path, size, entries, frames } = part;
      return { id, path, ...container.add(Buffer.concat(frames)), size, entries };
    });
    const marks = [...parts.flatMap((part) => part.entries), ...this.removed, ...this.plain];
    const times = marks.length === 0 ? [cut.at] : marks.map(({ at }) => at);
    const description: SegmentDescription = {
      format: FORMAT,
      version: FORMAT_VERSION,
      counter,
      incarnation,
      previous,
      from: times.reduce((least, at) => Math.min(least, at)),
      to: times.reduce((most, at) => Math.max(most, at)),
      place: marks.reduce((most, { place }) => Math.max(most, place), 0),
      parts,
      copies: this.copies,
      renamed: this.renamed,
      removed: this.removed,
      plain: this.plain,
      gaps: this.gaps,
      covered,
      missing,
    };
    const { sha256 } = container.finish(description);
    return { description, sha256, bytes: new Uint8Array(Buffer.concat(chunks)) };
  }
}
