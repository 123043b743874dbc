import { MINUTE_MS } from "../../../../../kernel/time/duration.ts";
import { isoTime } from "../../../../../kernel/time/iso-datetime.ts";
import type { Manifest, StoredFile } from "../format/manifest.ts";
import { TIMELINE_COPIES_MAX, TIMELINE_GAPS_MAX, TIMELINE_SPANS_MAX } from "../limits.ts";
import type { Store } from "../store/store.ts";
import { rangeOf } from "./moment.ts";
import { DATABASES, requireArchive } from "./restore.ts";

/** Moments that can be restored, of all files or of one. Times are ISO 8601. */
export interface Timeline {
  /** Times in which there are moments: one for all files; for one, as often as it was made. The newest, oldest first. */
  spans: { from: string; to: string }[];
  /** Times within them of which moments are missing. The newest, oldest first. */
  gaps: { from: string; to: string; file: string; reason: string }[];
  /** Full copies, those of one minute together. The newest, oldest first. */
  copies: { at: string; files: number; bytes: number }[];
  /** Number of files that are not removed, and bytes of all copies and entries. */
  files: number;
  bytes: number;
}

/**
 * Reads what can be restored, of the file with this name as `--only` takes it; null: of all. Resolves to null if there is no such
 * file. Errors: BackupError if there is no continuous backup, it is not complete yet, or it is damaged.
 */
export async function readTimeline(store: Store, name: string | null): Promise<Timeline | null> {
  const archive = await requireArchive(store);
  return timelineOf(archive.manifest, rangeOf(store, archive), name);
}

/** Returns the part of it that is shown; null: there is no such file. */
export function timelineOf(
  manifest: Pick<Manifest, "files" | "gaps">,
  range: Span,
  name: string | null,
): Timeline | null {
  const files = manifest.files.filter(
    ({ path, fulls }) => fulls.length > 0 && (name === null || path === name || path === DATABASES + name),
  );
  if (name !== null && files.length === 0) return null;
  const ids = new Set(files.flatMap(({ id, formerIds }) => [id, ...formerIds]));
  const gaps = manifest.gaps.filter(({ id, to }) => (name === null || ids.has(id)) && to >= range.from);
  return {
    spans: (name === null ? [range] : spansOf(files, range)).slice(-TIMELINE_SPANS_MAX).map(texts),
    gaps: gaps
      .sort((one, other) => one.from - other.from)
      .slice(-TIMELINE_GAPS_MAX)
      .map(({ file, reason, ...gap }) => ({ ...texts(gap), file, reason })),
    copies: copiesOf(files),
    files: files.filter(({ removed }) => removed === null).length,
    bytes: Math.round(files.reduce((sum, { bytes }) => sum + bytes, 0)),
  };
}

interface Span {
  from: number;
  to: number;
}

const texts = ({ from, to }: Span) => ({ from: isoTime(from), to: isoTime(to) });

const spansOf = (files: readonly StoredFile[], range: Span): Span[] =>
  files
    .map(({ fulls, removed }) => ({
      from: Math.max(range.from, fulls[0]?.at ?? range.from),
      to: removed?.at ?? range.to,
    }))
    .filter(({ from, to }) => from <= to)
    .sort((one, other) => one.from - other.from);

function copiesOf(files: readonly StoredFile[]): Timeline["copies"] {
  const minutes = new Map<number, { at: number; files: number; bytes: number }>();
  for (const { at, bytes } of files.flatMap(({ fulls }) => fulls)) {
    const minute = Math.floor(at / MINUTE_MS);
    const known = minutes.get(minute);
    const { at: first = at, files: count = 0, bytes: sum = 0 } = known ?? {};
    minutes.set(minute, { at: Math.min(first, at), files: count + 1, bytes: sum + bytes });
  }
  return [...minutes.values()]
    .sort((one, other) => one.at - other.at)
    .slice(-TIMELINE_COPIES_MAX)
    .map((copies) => ({ ...copies, at: isoTime(copies.at) }));
}
