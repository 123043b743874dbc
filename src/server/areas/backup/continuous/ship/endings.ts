import type { Archive } from "../format/archive.ts";
import type { GapReason, StoredFile } from "../format/manifest.ts";
import type { ShipParts } from "./disk.ts";
import type { SegmentBuilder } from "./segment.ts";
import type { Cut } from "./tracked-file.ts";

export interface EndingsDeps extends Pick<ShipParts, "tables"> {
  archive: Archive;
  builder: () => SegmentBuilder;
  /** The last cut up to which every file is in the store; null: there is none yet. */
  coveredTo: () => Cut | null;
  /** Whether all files were compared since this process began, and since records were lost. */
  areCompared: () => boolean;
}

/** Notes where the history of a file in the store ends, is missing, or goes on under another id. */
export class Endings {
  readonly #deps: EndingsDeps;

  constructor(deps: EndingsDeps) {
    this.#deps = deps;
  }

  /** Reports whether a file was closed as the store has it. */
  wasClosed(stored: StoredFile | undefined): boolean {
    const { areCompared, tables } = this.#deps;
    if (!areCompared()) return false;
    return stored === undefined || (tables.read(stored.id, stored.last.entry)?.stamp ?? null) !== null;
  }

  /** Notes a removal. false: it was noted before. */
  end(id: string, path: string, { at, place }: Cut): boolean {
    const { archive, builder, tables } = this.#deps;
    const renamed = builder().renamed.find((one) => one.id === id);
    if (renamed !== undefined) return this.end(renamed.to, path, { at, place });
    const isNoted = (archive.byId(id)?.removed ?? null) !== null || builder().removed.some((one) => one.id === id);
    if (isNoted) return false;
    builder().removed.push({ id, path, at, place });
    tables.forget(id);
    return true;
  }

  /** Notes a removal of which nothing was said, so that it is not known when it was. */
  endUnseen(id: string, path: string, cut: Cut): void {
    const from = this.#deps.coveredTo();
    if (this.end(id, path, cut) && from !== null) this.gap({ id, path, reason: "unread" }, from, cut);
  }

  gap(of: { id: string; path: string; reason: GapReason }, from: Cut, to: Cut): void {
    const { id, path, reason } = of;
    const times = { from: from.at, to: to.at, fromPlace: from.place, toPlace: to.place };
    this.#deps.builder().gaps.push({ id, file: path, ...times, reason });
  }

  /** Ends the file that had this path before the one with `id`. */
  replaced(path: string, id: string, cut: Cut): void {
    const { archive, builder } = this.#deps;
    const isRenamed = (other: string): boolean => builder().renamed.some((one) => one.id === other);
    for (const other of builder().idsOf(path, cut.place)) {
      if (other !== id && !isRenamed(other)) this.end(other, path, cut);
    }
    const former = archive.byPath(path);
    if (former === undefined || former.id === id) return;
    // One that had no commit, and so no id of its own, is the same file.
    if (builder().renamed.some((one) => one.id === former.id && one.to === id)) return;
    this.endUnseen(former.id, path, cut);
  }

  /** Returns the file with this path, if nothing was committed to it, so that it has no id yet, and gives it one. */
  renamed(path: string, to: string): StoredFile | undefined {
    const { archive, builder } = this.#deps;
    const stored = archive.byPath(path);
    if (stored === undefined || stored.last.number !== 0) return undefined;
    const { removed, renamed } = builder();
    if (removed.some(({ id }) => id === stored.id) || renamed.some(({ id }) => id === stored.id)) return undefined;
    renamed.push({ id: stored.id, to });
    return stored;
  }
}
