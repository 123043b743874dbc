import { DAY_MS } from "../../../../../kernel/time/duration.ts";
import type { Archive } from "../format/archive.ts";
import { readContainer } from "../format/container.ts";
import {
  type FullCopy,
  type Manifest,
  type PlainVersion,
  plainKey,
  type SegmentFacts,
  type SegmentIndexDescription,
  type StoredFile,
} from "../format/manifest.ts";
import { RETENTION_SLACK_MS } from "../limits.ts";
import type { Store } from "../store/store.ts";

/**
 * Takes out of the manifest what no moment of the last `keepDays` needs. Returns the keys of the objects, to be removed once the
 * manifest is stored. Errors: those of the store.
 */
export async function takeOutdated(store: Store, archive: Archive, now: number): Promise<string[]> {
  const { manifest } = archive;
  const before = now - manifest.keepDays * DAY_MS - RETENTION_SLACK_MS;
  const keys: string[] = [];
  const gone = new Set<string>();
  for (const file of manifest.files) {
    const isGone = file.removed !== null && file.removed.at < before;
    if (isGone) gone.add(file.id);
    const kept = isGone ? [] : neededCopies(file.fulls, before);
    keys.push(...file.fulls.filter((copy) => !copy.isSegment && !kept.includes(copy)).map(({ key }) => key));
    file.fulls = kept;
  }
  archive.drop(gone);
  keys.push(...(await outdatedSegments(store, archive, before)));
  keys.push(...outdatedMerged(manifest));
  keys.push(...outdatedPlain(manifest, before));
  keys.push(...manifest.gone.filter(([, at]) => at < before).map(([key]) => key));
  manifest.gone = manifest.gone.filter(([, at]) => at >= before);
  manifest.gaps = manifest.gaps.filter(({ to }) => to >= before);
  return keys;
}

/** Returns the last copy from before, and all later ones. */
function neededCopies(copies: readonly FullCopy[], before: number): FullCopy[] {
  const first = copies.findLastIndex(({ at }) => at <= before);
  return copies.slice(Math.max(0, first));
}

/** Takes out indexes, oldest first, whose segments no file needs. */
async function outdatedSegments(store: Store, archive: Archive, before: number): Promise<string[]> {
  const keys: string[] = [];
  const { manifest } = archive;
  while (manifest.indexes[0] !== undefined && manifest.indexes[0].to < before) {
    const { key } = manifest.indexes[0];
    const bytes = await store.read(key);
    if (bytes === null) break;
    const { segments } = readContainer<SegmentIndexDescription>(key, bytes).description;
    if (segments.some((segment) => isNeeded(segment, archive))) break;
    keys.push(...segments.map((segment) => segment.key), key);
    manifest.indexes.shift();
  }
  return keys;
}

/** Takes out merged objects of which no segment is left. */
function outdatedMerged(manifest: Manifest): string[] {
  const first = manifest.indexes[0]?.first ?? manifest.segments[0]?.counter ?? 0;
  const outdated = manifest.merged.filter(({ last }) => last < first);
  manifest.merged = manifest.merged.filter(({ last }) => last >= first);
  return outdated.map(({ key }) => key);
}

const isNeeded = (segment: SegmentFacts, archive: Archive): boolean =>
  segment.files.some(([id]) => {
    const file: StoredFile | undefined = archive.byId(id);
    const base = file?.fulls[0];
    if (file === undefined) return false;
    return base === undefined || base.key === segment.key || segment.place > base.place;
  });

function outdatedPlain(manifest: Manifest, before: number): string[] {
  const byPath = Map.groupBy(manifest.plain, ({ path }) => path);
  const kept: PlainVersion[] = [];
  for (const versions of byPath.values()) {
    const first = Math.max(
      0,
      versions.findLastIndex(({ at }) => at <= before),
    );
    const needed = versions.slice(first);
    // A removal needs no record once nothing older is kept.
    kept.push(...(needed[0]?.sha256 === null && needed[0].at <= before ? needed.slice(1) : needed));
  }
  const hashes = new Set(kept.map(({ sha256 }) => sha256));
  const dropped = new Set(manifest.plain.map(({ sha256 }) => sha256).filter((sha256) => !hashes.has(sha256)));
  manifest.plain = manifest.plain.filter((version) => kept.includes(version));
  return [...dropped].flatMap((sha256) => (sha256 === null ? [] : [plainKey(sha256)]));
}

/** Folders whose objects are named by the counter of a segment, so that a list has the oldest first. */
const COUNTED = ["segments/", "merged/", "copies/", "indexes/"];

/**
 * Removes objects that the manifest no longer names, oldest first: a lock of objects has refused it until now, or the process ended before
 * it. Younger ones of a folder are locked for longer than the first that is refused.
 */
export async function removeLeft(store: Store, manifest: Manifest): Promise<void> {
  const first = manifest.indexes[0]?.first ?? manifest.segments[0]?.counter ?? 0;
  const named = new Set([
    ...manifest.files.flatMap(({ fulls }) => fulls.map(({ key }) => key)),
    ...manifest.merged.map(({ key }) => key),
  ]);
  for (const folder of COUNTED) {
    for await (const { key } of store.list(folder)) {
      if (Number.parseInt(key.slice(folder.length), 10) >= first) break;
      if (!named.has(key) && !(await store.remove(key))) break;
    }
  }
}
