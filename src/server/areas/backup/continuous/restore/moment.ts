import { DAY_MS } from "../../../../../kernel/time/duration.ts";
import { BackupError } from "../../types.ts";
import { type Archive, readSegment, segmentsOf } from "../format/archive.ts";
import type { SegmentFacts } from "../format/manifest.ts";
import type { Store } from "../store/store.ts";

/** Moments that can be restored. */
export interface Range {
  from: number;
  to: number;
}

/** Returns the first and the last moment. Errors: BackupError while the first copies are not complete. */
export function rangeOf(store: Store, { manifest }: Archive): Range {
  if (manifest.from === null) {
    throw new BackupError(`${store.name} is not complete yet: its server has not stored the first copy of every file`);
  }
  const first = Math.max(manifest.from, manifest.writtenAt - manifest.keepDays * DAY_MS);
  const last = manifest.segments.reduce((most, { to }) => Math.max(most, to), first);
  return { from: first, to: last };
}

export interface Moment {
  /** The last place of the moment; null: the newest. */
  place: number | null;
  /** Whether the moment asked for is after all that is stored. */
  isAfterLast: boolean;
}

const timeText = (at: number): string => new Date(at).toISOString();

/**
 * Finds the last place in the order of commits whose time is at or before `at`, whatever the clock has done. Errors: BackupError
 * for a moment before the first.
 */
export async function momentOf(store: Store, archive: Archive, at: number | null): Promise<Moment> {
  const range = rangeOf(store, archive);
  if (at === null) return { place: null, isAfterLast: false };
  if (at < range.from) {
    throw new BackupError(
      `${timeText(at)} is before the first moment that can be restored: there are moments from ${timeText(range.from)} to ${timeText(range.to)}`,
    );
  }
  let place = archive.manifest.fromPlace;
  let isAfterLast = true;
  const { manifest } = archive;
  const undecided = manifest.indexes.filter((index) => index.from <= at && index.to > at);
  for (const { from, to, place: last } of manifest.indexes) {
    if (to <= at) place = Math.max(place, last);
    if (from > at) isAfterLast = false;
  }
  for await (const segment of segmentsOf(store, { indexes: undecided, segments: manifest.segments })) {
    if (segment.to > at) isAfterLast = false;
    if (segment.to <= at) place = Math.max(place, segment.place);
    else if (segment.from <= at) place = Math.max(place, await placeIn(store, segment, at));
  }
  return { place, isAfterLast: isAfterLast && at > range.to };
}

/** Returns the last place in a segment whose time is at or before `at`. */
async function placeIn(store: Store, { key, sha256 }: SegmentFacts, at: number): Promise<number> {
  const segment = await readSegment(store, key, sha256);
  if (segment === null) throw new BackupError(`${store.name} ${key} is missing`);
  const { parts, removed, plain } = segment.description;
  const marks = [...parts.flatMap((part) => part.entries), ...removed, ...plain];
  return marks.reduce((last, mark) => (mark.at <= at ? Math.max(last, mark.place) : last), 0);
}

const INSTANT = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Reads a moment: ISO 8601 with a zone, up to milliseconds. null: it is none. */
export function momentIn(text: string): number | null {
  const at = INSTANT.test(text) ? Date.parse(text.toUpperCase()) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
