import type { Archive } from "../format/archive.ts";
import { ContainerWriter } from "../format/container.ts";
import { decodeEntries, type EntryHead } from "../format/entries.ts";
import { FORMAT, FORMAT_VERSION, mergedKey, type SegmentFacts } from "../format/manifest.ts";
import { Composition, type MergedDescription, type MergedFacts, type MergedPart } from "../format/merged.ts";
import { MERGE_PASS_MS, MERGE_RETRY_MS, MERGED_MAX_BYTES, ZSTD_LEVEL } from "../limits.ts";
import { coverOf, readSource, type Source } from "../restore/sources.ts";
import type { Store } from "../store/store.ts";

interface MergedFile {
  id: string;
  path: string;
  composition: Composition;
}

/** Compositions of all files in consecutive segments. */
class Merge {
  readonly from: number;
  first = 0;
  last = 0;
  firstPlace = Number.POSITIVE_INFINITY;
  place = 0;
  bytes = 0;
  readonly #files = new Map<string, MergedFile>();

  constructor(from: number) {
    this.from = from;
  }

  add({ id, path }: { id: string; path: string }, entry: { head: EntryHead; pages: Uint8Array; hash: string }): void {
    const { head, pages, hash } = entry;
    this.firstPlace = Math.min(this.firstPlace, head.merged?.firstPlace ?? head.place);
    this.place = Math.max(this.place, head.place);
    const known = this.#files.get(id);
    this.bytes -= known?.composition.bytes ?? 0;
    // A full copy begins a new chain, which no older state leads to.
    if (head.kind === "full") this.#files.delete(id);
    else if (known?.composition.isFollowedBy(head) === true) known.composition.add(head, pages, hash);
    else this.#files.set(id, { id, path, composition: new Composition(head, pages, hash) });
    this.bytes += this.#files.get(id)?.composition.bytes ?? 0;
  }

  /** Takes note that all entries of these segments were added. */
  covers({ first, last, firstPlace, place }: Pick<MergedFacts, "first" | "last" | "firstPlace" | "place">): void {
    if (this.first === 0) this.first = first;
    this.last = last;
    this.firstPlace = Math.min(this.firstPlace, firstPlace);
    this.place = Math.max(this.place, place);
  }

  /** Writes the object. */
  build(incarnation: string): { sha256: string; bytes: Uint8Array<ArrayBuffer> } {
    const chunks: Uint8Array[] = [];
    const container = new ContainerWriter((some) => chunks.push(some));
    const parts = [...this.#files.values()].map(({ id, path, composition }): MergedPart => {
      const { line, pages } = composition.encode();
      const content = Buffer.concat([line, ...pages]);
      const span = container.add(Bun.zstdCompressSync(content, { level: ZSTD_LEVEL }));
      const { firstPlace, place } = composition;
      return { id, path, offset: span.offset, length: span.length, size: content.byteLength, firstPlace, place };
    });
    const { first, last } = this;
    const of: MergedDescription = { format: FORMAT, version: FORMAT_VERSION, incarnation, first, last, parts };
    const { sha256 } = container.finish(of);
    return { sha256, bytes: new Uint8Array(Buffer.concat(chunks)) };
  }
}

/** A merge of objects that the store has, which goes on for several passes. */
interface Job {
  level: number;
  merge: Merge;
  /** Sources that are not in it yet. */
  sources: Source[];
}

/**
 * Merges segments: those of a minute as they are made, and what the store has of an hour and a day afterwards. Merged objects stand
 * beside the segments, so that a restore reads little; without one it reads the segments.
 */
export class Merger {
  readonly #deps: { store: Store; archive: Archive; incarnation: string; spansMs: readonly number[] };
  #minute: Merge | null = null;
  #job: Job | null = null;
  /** Time before which nothing is merged again, after a failure. */
  #pausedTo = 0;
  /** Keys of objects for which a later one stands, to be removed once the manifest names them no longer. */
  #outdated: string[] = [];

  constructor(deps: { store: Store; archive: Archive; incarnation: string; spansMs: readonly number[] }) {
    this.#deps = deps;
  }

  /** Takes an entry of the next segment. */
  take(
    file: { id: string; path: string },
    entry: { head: EntryHead; pages: Uint8Array; hash: string },
    at: number,
  ): void {
    this.#minute ??= new Merge(at);
    this.#minute.add(file, entry);
  }

  /** Takes note that the segment with all entries that were taken is stored. */
  stored({ counter, place, firstPlace }: SegmentFacts): void {
    this.#minute?.covers({ first: counter, last: counter, firstPlace, place });
  }

  /** Stores what is complete, and merges more for a while; right after a segment was stored. Errors: those of the store. */
  async step(now: number): Promise<void> {
    const minute = this.#minute;
    try {
      if (minute !== null && (this.#isOver(0, minute.from, now) || minute.bytes > MERGED_MAX_BYTES)) {
        // If that fails, a restore reads its segments.
        this.#minute = null;
        if (minute.last > minute.first) await this.#store(0, minute, now);
      }
      if (now < this.#pausedTo) return;
      this.#job ??= await this.#nextJob(now);
      if (this.#job !== null) await this.#go(this.#job, now);
    } catch (cause) {
      this.#job = null;
      this.#pausedTo = now + MERGE_RETRY_MS;
      throw cause;
    }
  }

  /** Returns the keys of objects that may be removed. */
  takeOutdated(): string[] {
    const keys = this.#outdated;
    this.#outdated = [];
    return keys;
  }

  #isOver(level: number, from: number, now: number): boolean {
    const span = this.#deps.spansMs[level] ?? Number.POSITIVE_INFINITY;
    return Math.floor(from / span) !== Math.floor(now / span);
  }

  async #nextJob(now: number): Promise<Job | null> {
    const { store, archive, spansMs } = this.#deps;
    const { merged } = archive.manifest;
    for (let level = spansMs.length - 1; level > 0; level--) {
      const covered = merged.reduce((most, one) => (one.level >= level ? Math.max(most, one.last) : most), 0);
      const below = merged.filter((one) => one.level === level - 1 && one.first > covered);
      const [oldest] = below;
      if (oldest === undefined || !this.#isOver(level, oldest.from, now)) continue;
      const whole = below.filter(({ from }) => !this.#isOver(level, oldest.from, from));
      const last = whole.at(-1)?.last ?? oldest.last;
      const sources = await coverOf(store, archive.manifest, { first: oldest.first, last, below: level });
      return { level, merge: new Merge(oldest.from), sources };
    }
    return null;
  }

  async #go(job: Job, now: number): Promise<void> {
    const { store } = this.#deps;
    const startedAt = performance.now();
    const { merge, sources, level } = job;
    for (let source = sources[0]; source !== undefined; source = sources[0]) {
      if (performance.now() - startedAt > MERGE_PASS_MS) return;
      if (merge.bytes > MERGED_MAX_BYTES) break;
      const { name, description, block } = await readSource(store, source);
      for (const part of description.parts) {
        for (const entry of decodeEntries(name, new Uint8Array(Bun.zstdDecompressSync(block(part)))))
          merge.add(part, entry);
      }
      const { facts } = source;
      merge.covers("counter" in facts ? { ...facts, first: facts.counter, last: facts.counter } : facts);
      sources.shift();
    }
    await this.#store(level, merge, now);
    this.#job = null;
  }

  async #store(level: number, merge: Merge, now: number): Promise<void> {
    const { store, archive, incarnation } = this.#deps;
    const { merged } = archive.manifest;
    const { first, last, firstPlace, place, from } = merge;
    const same = merged.find((one) => one.first === first && one.last === last);
    // One that alone is large enough counts as that of the longer time.
    if (same !== undefined) {
      same.level = level;
      return;
    }
    const { sha256, bytes } = merge.build(incarnation);
    const key = mergedKey({ first, last }, incarnation);
    await store.put(key, bytes);
    const facts = { key, sha256, bytes: bytes.byteLength, level, first, last, firstPlace, place, from, to: now };
    const isKept = (one: MergedFacts): boolean => level !== 1 || one.level > 0 || one.first < first || one.last > last;
    this.#outdated.push(...merged.filter((one) => !isKept(one)).map((one) => one.key));
    archive.manifest.merged = [...merged.filter(isKept), facts];
  }
}
