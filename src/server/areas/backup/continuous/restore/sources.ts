import { BackupError } from "../../types.ts";
import { segmentsOf } from "../format/archive.ts";
import { type Container, readContainer } from "../format/container.ts";
import {
  type FullCopy,
  type Manifest,
  requireVersion,
  type SegmentDescription,
  type SegmentFacts,
} from "../format/manifest.ts";
import type { MergedDescription, MergedFacts } from "../format/merged.ts";
import type { Store } from "../store/store.ts";

/** An object with entries: a segment, or one that stands for several. */
export type Source = { kind: "segment"; facts: SegmentFacts } | { kind: "merged"; facts: MergedFacts };

export interface ReadSource {
  name: string;
  description: { parts: { id: string; path: string; offset: number; length: number }[] };
  block: Container<unknown>["block"];
}

/** Reads a source. Errors: BackupError if it is missing, damaged or another one. */
export async function readSource(store: Store, { facts }: Source): Promise<ReadSource> {
  const { container, name } = await readObject<SegmentDescription | MergedDescription>(store, facts);
  return { name, description: container.description, block: container.block };
}

async function readObject<Description extends { version: number }>(
  store: Store,
  { key, sha256 }: { key: string; sha256: string },
): Promise<{ name: string; container: Container<Description> }> {
  const name = `${store.name} ${key}`;
  const bytes = await store.read(key);
  if (bytes === null) throw new BackupError(`${name} is missing`);
  const container = readContainer<Description>(name, bytes);
  if (container.sha256 !== sha256) throw new BackupError(`${name} is not the one that the manifest names`);
  requireVersion(name, container.description);
  return { name, container };
}

/** Counters of segments, and the levels of merged objects that may stand for them. */
export interface Range {
  first: number;
  last: number;
  below: number;
}

/** Returns the largest objects that together have the segments of a range, in order. Errors: those of the store. */
export async function coverOf(store: Store, manifest: Manifest, { first, last, below }: Range): Promise<Source[]> {
  const inside = manifest.merged.filter((one) => one.level < below && one.first >= first && one.last <= last);
  const sources: Source[] = [];
  let next = first;
  const widest = inside.sort((one, other) => one.first - other.first || other.last - one.last);
  for (const facts of widest) {
    if (facts.first < next) continue;
    sources.push(...(await segmentsIn(store, manifest, { first: next, last: facts.first - 1 })));
    sources.push({ kind: "merged", facts });
    next = facts.last + 1;
  }
  sources.push(...(await segmentsIn(store, manifest, { first: next, last })));
  return sources;
}

async function segmentsIn(
  store: Store,
  manifest: Manifest,
  { first, last }: { first: number; last: number },
): Promise<Source[]> {
  if (first > last) return [];
  const indexes = manifest.indexes.filter((index) => index.first <= last && index.last >= first);
  const sources: Source[] = [];
  for await (const facts of segmentsOf(store, { indexes, segments: manifest.segments })) {
    if (facts.counter >= first && facts.counter <= last) sources.push({ kind: "segment", facts });
  }
  return sources;
}

/** A file whose entries are wanted: those after its base, up to a place. */
export interface Wanted {
  base: FullCopy;
  /** null: up to the newest. */
  place: number | null;
  /** null: its base is an entry that has not come yet. */
  hashes: unknown;
}

interface Walk<T extends Wanted> {
  store: Store;
  manifest: Manifest;
  /** Files by each of their ids. */
  targets: ReadonlyMap<string, T>;
  /** Called with the block of each part, in order for each file. */
  apply: (name: string, block: Uint8Array<ArrayBuffer>, target: T) => void;
  onProgress: (bytes: number) => void;
  /** Called with the bytes of the objects that it will read, as far as none has to be read by its parts. */
  onPlanned?: (bytes: number) => void;
  signal?: AbortSignal;
}

/**
 * Passes on the entries that files need, of as few objects as possible: where a merged object begins before the base of a file, or goes on
 * behind its moment, those for which it stands are read for this file.
 */
export async function applySources<T extends Wanted>(walk: Walk<T>): Promise<void> {
  const { store, manifest, targets } = walk;
  const [{ first } = { first: Number.MAX_SAFE_INTEGER }] = manifest.indexes;
  const counters = manifest.segments.map(({ counter }) => counter);
  const range = { first: Math.min(first, counters[0] ?? first), last: counters.at(-1) ?? manifest.lastIndexed.counter };
  // Indexes behind which every base lies have nothing that is needed.
  const oldest = Math.min(...targets.values().map(({ base }) => base.place));
  const indexes = manifest.indexes.filter(({ place }) => place >= oldest);
  const sources = await coverOf(store, { ...manifest, indexes }, { ...range, below: Number.POSITIVE_INFINITY });
  const wanted = sources.filter((source) => isWanted(source, targets));
  walk.onPlanned?.(wanted.reduce((sum, { facts }) => sum + facts.bytes, 0));
  for (const source of sources) {
    walk.signal?.throwIfAborted();
    await visit(walk, source, targets);
  }
}

async function visit<T extends Wanted>(walk: Walk<T>, source: Source, targets: ReadonlyMap<string, T>): Promise<void> {
  const { store, manifest } = walk;
  const { facts } = source;
  if (source.kind === "segment") {
    if (isWanted(source, targets)) await readInto(walk, source, targets);
    return;
  }
  const some = new Map([...targets].filter(([, target]) => needs(target, facts)));
  if (some.size === 0) return;
  const fitting = new Map(
    [...some].filter(([, { place, hashes }]) => hashes !== null && (place ?? facts.place) >= facts.place),
  );
  // Where every base lies within its time, it most likely begins too early for all: it would be read in vain.
  const isWorth = fitting.values().some(({ base }) => base.place < facts.firstPlace);
  const early = isWorth ? await readInto(walk, source, fitting) : new Set(fitting.values());
  const rest = new Map([...some].filter(([id, target]) => !fitting.has(id) || early.has(target)));
  if (rest.size === 0) return;
  const { first, last, level } = source.facts;
  for (const child of await coverOf(store, manifest, { first, last, below: level })) await visit(walk, child, rest);
}

/** Whether a source may have entries that one of the files needs. */
const isWanted = (source: Source, targets: ReadonlyMap<string, Wanted>): boolean =>
  source.kind === "segment"
    ? source.facts.files.some(([id]) => isIn(source.facts, targets.get(id)))
    : targets.values().some((target) => needs(target, source.facts));

/** Whether a file may have entries in a source that it needs. */
const needs = ({ base, place, hashes }: Wanted, facts: { place: number; firstPlace: number }): boolean =>
  (hashes === null ? base.place <= facts.place : base.place < facts.place) &&
  (place === null || facts.firstPlace <= place);

const isIn = (segment: SegmentFacts, target: Wanted | undefined): boolean =>
  target !== undefined && (segment.key === target.base.key || needs(target, segment));

/** Applies the parts of an object. Returns the targets for which it begins too early. */
async function readInto<T extends Wanted>(
  { store, apply, onProgress }: Walk<T>,
  source: Source,
  targets: ReadonlyMap<string, T>,
): Promise<Set<T>> {
  const { name, container } = await readObject<SegmentDescription | MergedDescription>(store, source.facts);
  const early = new Set<T>();
  for (const part of container.description.parts) {
    const target = targets.get(part.id);
    if (target === undefined) continue;
    // A file that got another id has a part for each, in order.
    if ("firstPlace" in part && (part.firstPlace <= target.base.place || early.has(target))) early.add(target);
    else apply(name, new Uint8Array(Bun.zstdDecompressSync(container.block(part))), target);
  }
  onProgress(source.facts.bytes);
  return early;
}
