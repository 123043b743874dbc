import type { Store } from "../store/store.ts";
import { rangeOf } from "./moment.ts";
import { requireArchive } from "./restore.ts";

/** Moments and files that can be restored from a store. Times are ISO 8601. */
export interface History {
  from: string;
  to: string;
  gaps: { from: string; to: string; file: string; reason: string }[];
  /** Bytes of all objects. */
  bytes: number;
  verifiedAt: string | null;
  files: { file: string; from: string; to: string; bytes: number }[];
}

const timeText = (at: number): string => new Date(at).toISOString();

/** Reads what can be restored. Errors: BackupError if there is no continuous backup, or it is damaged. */
export async function readHistory(store: Store): Promise<History> {
  const archive = await requireArchive(store);
  const { from, to } = rangeOf(store, archive);
  const { files, gaps, verifiedAt } = archive.manifest;
  let bytes = 0;
  for await (const object of store.list("")) bytes += object.bytes;
  return {
    from: timeText(from),
    to: timeText(to),
    gaps: gaps.map((gap) => ({ from: timeText(gap.from), to: timeText(gap.to), file: gap.file, reason: gap.reason })),
    bytes,
    verifiedAt: verifiedAt === null ? null : timeText(verifiedAt),
    files: files
      .filter(({ fulls }) => fulls.length > 0)
      .map(({ path, fulls, last, removed, bytes: own }) => ({
        file: path,
        from: timeText(Math.max(from, fulls[0]?.at ?? from)),
        to: timeText(removed?.at ?? Math.max(to, last.at)),
        bytes: Math.round(own),
      }))
      .sort((one, other) => (one.file < other.file ? -1 : 1)),
  };
}
