import { relative, sep } from "node:path";
import type { Clock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import type { Ids } from "../../../../../kernel/ids.ts";
import { VERSION } from "../../../../../kernel/version.ts";
import type { Owner } from "../../../../disk/owner-marker.ts";
import { Archive, factsOf, lastOf, loadArchive } from "../format/archive.ts";
import { ContainerWriter } from "../format/container.ts";
import {
  type Covered,
  copyKey,
  FORMAT,
  FORMAT_VERSION,
  indexKey,
  MANIFEST_KEY,
  type Manifest,
  type SegmentDescription,
  type SegmentIndexDescription,
  segmentKey,
} from "../format/manifest.ts";
import {
  BASES_MAX_BYTES,
  LAST_CONTENTS_MS,
  MANIFEST_EVERY_MS,
  MERGED_SPANS_MS,
  RECONCILE_EVERY_MS,
  RETENTION_EVERY_MS,
  SCAN_PASS_MS,
  SEGMENT_MAX_BYTES,
  SEGMENTS_LISTED_MAX,
} from "../limits.ts";
import { claimPlace, isDisplaced, requireClaim } from "../store/owner.ts";
import type { StorePlace } from "../store/store.ts";
import { Bases } from "./bases.ts";
import type { ShipParts } from "./disk.ts";
import { Merger } from "./merger.ts";
import { removeLeft, takeOutdated } from "./retention.ts";
import { type BuiltSegment, SegmentBuilder } from "./segment.ts";
import { TrackedFiles } from "./tracked.ts";
import type { Cut } from "./tracked-file.ts";

const ENDING = ".db";

/** Settings of the server, sent with each pass. */
export interface ShipSettings {
  dataDirectory: string;
  to: StorePlace;
  keepDays: number;
  everyMs: number;
  owner: Owner;
  /** Random for each start of the server. */
  server: string;
  /** Epoch of the owner of a cluster, by which its objects are named. Missing: the server is alone. */
  epoch?: number;
}

/** One handing over: all records up to a moment, whose commits are on the disk. */
export interface PassRequest {
  settings: ShipSettings;
  takeOver: boolean;
  /** Whether this server has not stored anything yet. */
  isFirst: boolean;
  /** Time of the last verification that succeeded, as far as the server knows. */
  verifiedAt: number | null;
  files: { path: string; bytes: number; isAfterLoss: boolean }[];
  /** Paths of databases whose last commits may not be on the disk. */
  skipped: readonly string[];
  cut: Cut;
  /** Whether records of commits before the cut were dropped, so that files have to be compared later. */
  isLosing: boolean;
  /** Whether the server stops. */
  isLast: boolean;
}

export interface PassAnswer {
  uploads: number;
  /** Whether something waits for the next pass. */
  hasMore: boolean;
  /** Contents of buckets that are not in the store; null: all are. */
  contents: { since: number; bytes: number } | null;
  /** Files of which commits were missed, and that are copied anew. */
  broken: string[];
  /** Problems of steps that will be tried again. */
  problems: string[];
  /** Another server that was noticed, and stores no more; null: none. */
  notice: string | null;
  verifiedAt: number | null;
  /** Whether the first copy of every file is stored. */
  isComplete: boolean;
  /** The last moment up to which the store has every file; null: there is none yet. */
  covered: Covered | null;
  /** That of the server that stored before. */
  found: Covered | null;
  /** Time of the last full copy; null: there is none. */
  lastCopyAt: number | null;
}

interface ShipperDeps extends Pick<ShipParts, "store" | "disk"> {
  settings: ShipSettings;
  clock: Clock;
}

interface OpenDeps {
  ids: Ids;
  bases?: Pick<Bases, "get" | "set">;
  /** Times for which merged objects stand. Default: a minute, an hour, a day. */
  mergedSpansMs?: readonly number[];
}

/** Stores what the server hands over. It lives as long as its process. */
export class Shipper {
  readonly #deps: ShipperDeps;
  readonly #incarnation: string;
  /** The incarnation that stored before; "": none. */
  readonly #former: string;
  #notice: string | null = null;
  readonly #archive: Archive;
  readonly #tracked: TrackedFiles;
  readonly #plain: ReturnType<ShipParts["plain"]>;
  readonly #contents: ReturnType<ShipParts["contents"]>;
  readonly #merger: Merger;
  #builder: SegmentBuilder;
  /** A segment that could not be stored yet. */
  #unsent: BuiltSegment | null = null;
  #copyCounter = 0;
  /** Files of records that are in memory, until their entries are stored. */
  readonly #consumed = new Set<string>();
  #uploads = 0;
  #broken: string[] = [];
  #problems: string[] = [];
  #manifestAt = 0;
  /** The last cut up to which every file is in the store; null: there is none yet. */
  #covered: Cut | null;
  /** Moment that the store itself names, and the one that it named before this process. */
  #stored: Cut | null;
  readonly #found: Cut | null;
  #lastCopyAt: number | null;
  #reconciledAt: number | null = null;
  #prunedAt: number;
  /** Files that had a WAL when all were compared, and of which the server had said nothing. */
  readonly #suspects: string[] = [];
  /** Files that were missing when all were compared, and of whose removal the server had said nothing. */
  #missing: { id: string; path: string; cut: Cut }[] = [];

  private constructor(
    deps: ShipperDeps & ShipParts & OpenDeps,
    opened: { archive: Archive; incarnation: string; wasAnothers: boolean; former: string },
  ) {
    this.#deps = deps;
    this.#archive = opened.archive;
    this.#incarnation = opened.incarnation;
    this.#former = opened.former;
    const { archive } = opened;
    const { store, disk, tables, ids, clock, bases = new Bases(BASES_MAX_BYTES) } = deps;
    this.#prunedAt = clock.now();
    const { mergedSpansMs: spansMs = MERGED_SPANS_MS } = deps;
    this.#merger = new Merger({ store, archive, incarnation: opened.incarnation, spansMs });
    this.#builder = this.#newBuilder();
    this.#covered = archive.manifest.covered ?? null;
    this.#stored = this.#covered;
    this.#found = this.#covered;
    this.#lastCopyAt = lastCopyIn(archive);
    this.#plain = deps.plain(archive);
    this.#contents = deps.contents(archive);
    this.#tracked = new TrackedFiles({
      archive,
      store,
      disk,
      ids,
      tables,
      bases,
      builder: () => this.#builder,
      nextCopyKey: (id) =>
        copyKey(id, lastOf(archive.manifest).counter + 1, `${this.#incarnation}-${++this.#copyCounter}`),
      onBroken: (path) => this.#broken.push(path),
      coveredTo: () => this.#covered,
      areCompared: () => this.#isCompared,
      reason: opened.wasAnothers ? "replaced" : "unread",
    });
  }

  /** Makes this process the one that stores, and reads what is stored. Errors: ForeignPlace, Displaced, those of the store. */
  static async open(
    { settings, takeOver, isFirst }: Pick<PassRequest, "settings" | "takeOver" | "isFirst">,
    deps: ShipParts & OpenDeps & { clock: Clock },
  ): Promise<Shipper> {
    const { owner, server, keepDays } = settings;
    const { store, clock, ids } = deps;
    const random = ids.uuid().slice(0, 13).replace("-", "");
    const incarnation = settings.epoch === undefined ? random : `${settings.epoch}x${random}`;
    const { wasAnothers, former } = await claimPlace(
      store,
      { owner, incarnation, server },
      { takeOver, isFirst, clock },
    );
    const archive = (await loadArchive(store)) ?? new Archive(emptyManifest());
    Object.assign(archive.manifest, { incarnation, keepDays });
    const shipper = new Shipper({ ...deps, settings }, { archive, incarnation, wasAnothers, former });
    await shipper.#storeManifest();
    return shipper;
  }

  /** Stores everything that was handed over. Errors: those of the store; a pass with the same files goes on. */
  async pass(request: PassRequest): Promise<PassAnswer> {
    const { cut, isLast } = request;
    this.#uploads = 0;
    this.#broken = [];
    this.#problems = [];
    // What could not be stored by the last pass.
    await this.#flush(cut);
    // What comparisons have found is on the disk by now.
    await this.#tracked.publish();
    for (const file of request.files) await this.#consume(file, request);
    await this.#compare(request);
    this.#builder.plain.push(...(await this.#plain.collect(cut)));
    await this.#tracked.publishCopies();
    await this.#settleContents(isLast ? LAST_CONTENTS_MS : request.settings.everyMs);
    const isWhole = this.#isCompared && this.#tracked.areReady && !request.isLosing;
    if (isWhole) this.#covered = cut;
    await this.#flush(cut);
    for (const { path } of request.files) this.#consumed.delete(path);
    this.#tracked.save(cut.at, { isLast });
    if (!isLast) this.#tracked.copyDue(cut);
    const { manifest } = this.#archive;
    const isVerified = (request.verifiedAt ?? 0) > (manifest.verifiedAt ?? 0);
    if (isVerified) manifest.verifiedAt = request.verifiedAt;
    await this.#keepManifest(cut, { isDue: isLast || isVerified, isLast, isWhole });
    const hasMore = !this.#isCompared || !this.#tracked.areReady || !this.#builder.isEmpty;
    const { verifiedAt } = manifest;
    const isComplete = manifest.from !== null;
    const [uploads, broken, problems, notice] = [this.#uploads, this.#broken, this.#problems, this.#notice];
    const [covered, found, lastCopyAt] = [this.#stored, this.#found, this.#lastCopyAt];
    const stored = { isComplete, covered, found, lastCopyAt };
    return { uploads, hasMore, contents: this.#contents.lag, broken, problems, notice, verifiedAt, ...stored };
  }

  /** Takes the records of one file. */
  async #consume(file: PassRequest["files"][number], { skipped, cut, settings }: PassRequest): Promise<void> {
    if (this.#consumed.has(file.path)) return;
    if (file.isAfterLoss) {
      this.#tracked.distrust();
      this.#reconciledAt = null;
      // The record of a removal may be among those that were lost.
      this.#missing = [];
      this.#broken.push("*");
    }
    const left = new Set(skipped.map((path) => relative(settings.dataDirectory, path).split(sep).join("/")));
    for (const { record, content } of this.#deps.disk.records(file)) {
      if (left.has(`${record.path}${ENDING}`)) continue;
      if (record.type === "content") this.#contents.add(record.path, cut.at);
      else this.#tracked.take(record, content);
      if (this.#builder.bytes > SEGMENT_MAX_BYTES) await this.#flush(cut);
    }
    this.#consumed.add(file.path);
  }

  /** Compares files with what is stored, at first and each hour. */
  async #compare({ cut, isLast, isLosing }: PassRequest): Promise<void> {
    const { clock, disk } = this.#deps;
    const isDue = this.#reconciledAt === null || cut.at - this.#reconciledAt >= RECONCILE_EVERY_MS;
    const former = this.#suspects.splice(0);
    // The record of a removal may be among those that are being lost: what is missing is found again afterwards.
    const missing = isLosing ? [] : this.#missing.splice(0);
    if (isDue) this.#reconcile(cut);
    // What the server has removed since that cut, it has said by now, with the place.
    for (const one of isLast && !isLosing ? [...missing, ...this.#missing.splice(0)] : missing) {
      const isBack = disk.exists(one.path) && this.#archive.byPath(one.path)?.id === one.id;
      if (!isBack) this.#tracked.end(one, one.cut);
    }
    // If the server had one of them open, it has said so by now: a crash has left its WAL. At a stop all files are closed.
    for (const path of isLast ? [...former, ...this.#suspects.splice(0)] : former) {
      this.#visitLeft(path);
    }
    if (isDue && !isLast) await this.#contents.reconcile(cut.at);
    const startedAt = clock.now();
    this.#tracked.scan(cut, {
      isOver: (bytes) => bytes > SEGMENT_MAX_BYTES || clock.now() - startedAt > SCAN_PASS_MS,
      onFailure: (path, cause) => {
        this.#problems.push(`${path} could not be compared: ${reasonOf(cause)}`);
      },
    });
    // All files are closed, and so on the disk.
    if (isLast) await this.#tracked.publish();
  }

  #visitLeft(path: string): void {
    try {
      this.#tracked.visitLeft(path);
    } catch (cause) {
      // It is compared as a whole.
      if (this.#deps.disk.exists(path)) this.#problems.push(`the WAL of ${path} could not be read: ${reasonOf(cause)}`);
    }
  }

  /** Whether all files were compared, and nothing is left of that. */
  get #isCompared(): boolean {
    return this.#reconciledAt !== null && this.#suspects.length + this.#missing.length === 0;
  }

  #reconcile(cut: Cut): void {
    const { disk } = this.#deps;
    const present = new Set<string>();
    for (const path of disk.databases()) {
      present.add(path);
      if (!disk.isOpen(path)) this.#tracked.visit(path, disk.stamp(path));
      else if (this.#reconciledAt === null) this.#suspects.push(path);
    }
    const stored = this.#archive.manifest.files.filter(({ removed }) => removed === null);
    for (const { id, path } of [...stored, ...this.#builder.files]) {
      if (!present.has(path) && !disk.exists(path)) this.#missing.push({ id, path, cut });
    }
    this.#reconciledAt = cut.at;
  }

  async #settleContents(waitMs: number): Promise<void> {
    try {
      await this.#contents.settle(waitMs);
    } catch (cause) {
      this.#problems.push(`contents could not be stored: ${reasonOf(cause)}`);
    }
  }

  /** Stores a segment with what was collected. */
  async #flush(cut: Cut): Promise<void> {
    if (this.#unsent !== null) await this.#send(this.#unsent);
    if (this.#builder.isEmpty) return;
    const { counter, sha256: previous } = lastOf(this.#archive.manifest);
    const { missing } = this.#contents;
    this.#unsent = this.#builder.build({
      counter: counter + 1,
      incarnation: this.#incarnation,
      previous,
      cut,
      covered: this.#covered,
      missing,
    });
    this.#builder = this.#newBuilder();
    await this.#send(this.#unsent);
  }

  async #send({ description, sha256, bytes }: BuiltSegment): Promise<void> {
    const { store } = this.#deps;
    await requireClaim(store, this.#incarnation);
    const key = segmentKey(description.counter, this.#incarnation);
    await store.put(key, bytes);
    const facts = factsOf(key, { description, sha256, bytes: bytes.byteLength });
    this.#archive.apply(facts, description);
    this.#stored = description.covered ?? null;
    if (hasCopy(description)) this.#lastCopyAt = this.#deps.clock.now();
    this.#unsent = null;
    this.#uploads++;
    this.#merger.stored(facts);
    await this.#merge();
  }

  #newBuilder(): SegmentBuilder {
    return new SegmentBuilder((file, entry) => this.#merger.take(file, entry, this.#deps.clock.now()));
  }

  async #merge(): Promise<void> {
    try {
      await this.#merger.step(this.#deps.clock.now());
    } catch (cause) {
      this.#problems.push(`segments could not be merged: ${reasonOf(cause)}`);
    }
  }

  /** Stores the manifest each minute, when it is due, as at a stop, and when the first copies are complete. */
  async #keepManifest(
    cut: Cut,
    { isDue, isLast, isWhole }: { isDue: boolean; isLast: boolean; isWhole: boolean },
  ): Promise<void> {
    const { manifest } = this.#archive;
    const isFirstWhole = manifest.from === null && isWhole;
    if (isFirstWhole) Object.assign(manifest, { from: cut.at, fromPlace: cut.place });
    if (!isDue && !isFirstWhole && cut.at - this.#manifestAt < MANIFEST_EVERY_MS) return;
    const isPruning = !isLast && cut.at - this.#prunedAt >= RETENTION_EVERY_MS;
    const outdated = this.#merger.takeOutdated();
    if (isPruning) outdated.push(...(await takeOutdated(this.#deps.store, this.#archive, cut.at)));
    if (isPruning) this.#prunedAt = cut.at;
    await this.#listSegments();
    await this.#storeManifest();
    await this.#remove(outdated, { isPruning });
    await this.#lookForFormer();
  }

  async #remove(outdated: readonly string[], { isPruning }: { isPruning: boolean }): Promise<void> {
    const { store } = this.#deps;
    try {
      for (const key of outdated) await store.remove(key);
      if (isPruning) await removeLeft(store, this.#archive.manifest);
    } catch (cause) {
      this.#problems.push(`objects that nothing needs could not be removed: ${reasonOf(cause)}`);
    }
  }

  /** Looks whether the server that stored here before was running still, and has noticed this one. */
  async #lookForFormer(): Promise<void> {
    if (this.#notice !== null || this.#former === "" || !(await isDisplaced(this.#deps.store, this.#former))) return;
    this.#notice =
      "another server with a copy of this data directory was storing here; it has stopped, and this one goes on";
  }

  /** Moves the oldest segments of a long manifest to an index. */
  async #listSegments(): Promise<void> {
    const { manifest } = this.#archive;
    while (manifest.segments.length >= 2 * SEGMENTS_LISTED_MAX) {
      const segments = manifest.segments.slice(0, SEGMENTS_LISTED_MAX);
      const last = segments.at(-1);
      if (last === undefined) return;
      const description: SegmentIndexDescription = { format: FORMAT, version: FORMAT_VERSION, segments };
      const { content, sha256 } = containerOf(description);
      const key = indexKey(last.counter, this.#incarnation);
      await this.#deps.store.put(key, content);
      const from = Math.min(...segments.map((segment) => segment.from));
      const to = Math.max(...segments.map((segment) => segment.to));
      const place = segments.reduce((most, one) => Math.max(most, one.place), 0);
      const counters = { first: segments[0]?.counter ?? last.counter, last: last.counter };
      manifest.indexes.push({ key, sha256, bytes: content.byteLength, from, to, place, ...counters });
      manifest.lastIndexed = { counter: last.counter, sha256: last.sha256 };
      manifest.segments.splice(0, segments.length);
    }
  }

  async #storeManifest(): Promise<void> {
    const { store, clock } = this.#deps;
    const { manifest } = this.#archive;
    manifest.writtenAt = clock.now();
    manifest.missing = this.#contents.missing;
    manifest.covered = this.#covered;
    await requireClaim(store, this.#incarnation);
    await store.put(MANIFEST_KEY, containerOf(manifest).content);
    this.#manifestAt = manifest.writtenAt;
    this.#stored = manifest.covered;
  }
}

function containerOf(description: object): { content: Uint8Array<ArrayBuffer>; sha256: string } {
  const chunks: Uint8Array[] = [];
  const { sha256 } = new ContainerWriter((bytes) => chunks.push(bytes)).finish(description);
  return { content: new Uint8Array(Buffer.concat(chunks)), sha256 };
}

/** Returns the time of the last commit that a full copy has; null: there is none. */
const lastCopyIn = ({ manifest }: Archive): number | null => {
  const last = manifest.files.flatMap(({ fulls }) => fulls).reduce((most, { at }) => Math.max(most, at), 0);
  return last === 0 ? null : last;
};

const hasCopy = ({ copies, parts }: SegmentDescription): boolean =>
  copies.length > 0 || parts.some(({ entries }) => entries.some(({ kind }) => kind === "full"));

export const emptyManifest = (): Manifest => ({
  format: FORMAT,
  version: FORMAT_VERSION,
  platform: VERSION,
  incarnation: "",
  writtenAt: 0,
  keepDays: 0,
  from: null,
  fromPlace: 0,
  files: [],
  indexes: [],
  lastIndexed: { counter: 0, sha256: null },
  segments: [],
  merged: [],
  plain: [],
  gaps: [],
  covered: null,
  missing: [],
  gone: [],
  verifiedAt: null,
});
