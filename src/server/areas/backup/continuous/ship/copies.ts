import type { StoredFile } from "../format/manifest.ts";
import { COPY_AGE_MAX_MS, ENTRIES_OVER_COPY_BYTES } from "../limits.ts";
import type { ShipParts } from "./disk.ts";
import type { Scanned, ScanOptions } from "./scan.ts";
import type { SegmentBuilder } from "./segment.ts";
import type { Cut, Tracked } from "./tracked-file.ts";

interface CopiesDeps extends Pick<ShipParts, "disk" | "store"> {
  byId: (id: string) => StoredFile | undefined;
  builder: () => SegmentBuilder;
  /** Returns the name of the next copy. */
  nextCopyKey: (id: string) => string;
  scan: (file: Tracked, cut: Cut, purpose: ScanOptions["purpose"]) => Scanned;
  /** Has a file compared that is not as its entries say. */
  onUnequal: (path: string) => void;
}

/**
 * Reads files by another way than their commits, and compares them with what the commits have made: to take a full copy of one, or to
 * confirm one that a crash has left open. A file that was read ahead of its commits is compared once they have come.
 */
export class Copies {
  readonly #deps: CopiesDeps;

  constructor(deps: CopiesDeps) {
    this.#deps = deps;
  }

  /** Reads a file that is due; one of all files at a time. */
  read(files: Iterable<Tracked>, cut: Cut): void {
    for (const file of files) {
      if (file.state !== "ready" || file.copy !== null || file.chain?.last == null) continue;
      const isDue = this.#isDue(file, cut);
      if (!isDue && file.doubtedSince === null) continue;
      const purpose = isDue ? "copy" : "confirm";
      const copied = this.#scanOf(file, cut, purpose);
      if (copied === null) continue;
      const { row, pages, found } = copied;
      if (found.kind !== "copy" && found.kind !== "read") return;
      const { last } = file.chain;
      const { number, nonce, at, place } = row ?? last;
      const checksum = found.hashes.checksum;
      const isNow = number === last.number;
      const isEqual = isNow && checksum === last.checksum;
      const copy = found.kind === "copy" ? found.copy : null;
      file.copy = { number, checksum, file: copy, position: { number, nonce, at, place }, pages, isEqual };
      // A file without numbers has changed meanwhile: later.
      if (isNow && !isEqual) this.#unequal(file, row === null);
      return;
    }
  }

  /** Compares what was read with the state that a commit has made. */
  compare(file: Tracked, { number, after }: { number: number; after: string }): void {
    const { copy } = file;
    if (copy === null || copy.number !== number) return;
    if (copy.checksum === after) copy.isEqual = true;
    else this.#unequal(file, false);
  }

  /** Stores the copies that have proved equal. */
  async publish(files: Iterable<Tracked>): Promise<void> {
    const { store, builder, nextCopyKey } = this.#deps;
    for (const file of files) {
      const { copy, chain } = file;
      if (copy === null || !copy.isEqual || chain === null) continue;
      file.doubtedSince = null;
      if (copy.file !== null) {
        const key = nextCopyKey(chain.id);
        await store.putFile(key, copy.file.path);
        const { position, pages, checksum } = copy;
        const { sha256, bytes } = copy.file;
        const { pageBytes } = chain.hashes;
        const of = { id: chain.id, path: file.path, pageBytes, pages, checksum, isBase: false };
        builder().copies.push({ ...of, copy: { ...position, key, sha256, isSegment: false, bytes } });
      }
      this.drop(file);
    }
  }

  drop(file: Tracked | undefined): void {
    if (file === undefined || file.copy === null) return;
    if (file.copy.file !== null) this.#deps.disk.removeCopy(file.copy.file.path);
    file.copy = null;
  }

  #unequal(file: Tracked, isExpected: boolean): void {
    this.drop(file);
    if (!isExpected) this.#deps.onUnequal(file.path);
  }

  #isDue({ chain }: Tracked, { at }: Cut): boolean {
    const stored = chain === null ? undefined : this.#deps.byId(chain.id);
    const copied = stored?.fulls.at(-1);
    if (stored === undefined || copied === undefined || stored.last.number === copied.number) return false;
    const bytes = stored.last.pages * stored.pageBytes;
    return stored.entryBytes > bytes + ENTRIES_OVER_COPY_BYTES || at - copied.at > COPY_AGE_MAX_MS;
  }

  /** Reads a file; null: it was removed meanwhile. */
  #scanOf(file: Tracked, cut: Cut, purpose: ScanOptions["purpose"]): Scanned | null {
    try {
      return this.#deps.scan(file, cut, purpose);
    } catch (cause) {
      if (this.#deps.disk.exists(file.path)) throw cause;
      return null;
    }
  }
}
