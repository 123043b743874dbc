import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readSync, rmSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Clock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import type { Ids } from "../../../../../kernel/ids.ts";
import { VERSION } from "../../../../../kernel/version.ts";
import type { Owner } from "../../../../disk/owner-marker.ts";
import { CONTINUOUS_FOLDER, scanFiles } from "../../layout.ts";
import { stampOf } from "../capture/capture.ts";
import { decodeRecords } from "../capture/records.ts";
import { Archive, factsOf, lastOf, loadArchive } from "../format/archive.ts";
import { ContainerWriter } from "../format/container.ts";
import {
  copyKey,
  FORMAT,
  FORMAT_VERSION,
  indexKey,
  MANIFEST_KEY,
  type Manifest,
  type SegmentIndexDescription,
  segmentKey,
} from "../format/manifest.ts";
import {
  BASES_MAX_BYTES,
  LAST_CONTENTS_MS,
  MANIFEST_EVERY_MS,
  RECONCILE_EVERY_MS,
  RETENTION_EVERY_MS,
  SCAN_PASS_MS,
  SEGMENT_MAX_BYTES,
  SEGMENTS_LISTED_MAX,
} from "../limits.ts";
import { claimPlace, requireClaim } from "../store/owner.ts";
import { openStore, type Store, type StorePlace } from "../store/store.ts";
import { Bases } from "./bases.ts";
import { Contents } from "./contents.ts";
import { PlainFiles } from "./plain.ts";
import { takeOutdated } from "./retention.ts";
import { type BuiltSegment, SegmentBuilder } from "./segment.ts";
import { HashTables } from "./tables.ts";
import { TrackedFiles } from "./tracked.ts";
import type { Cut } from "./tracked-file.ts";

const ENDING = ".db";
const D1 = "d1/";
const COPY_ENDING = ".copy";

/** Settings of the server, sent with each pass. */
export interface ShipSettings {
  dataDirectory: string;
  to: StorePlace;
  keepDays: number;
  everyMs: number;
  owner: Owner;
  /** Random for each start of the server. */
  server: string;
}

/** One handing over: all records up to a moment, whose commits are on the disk. */
export interface PassRequest {
  settings: ShipSettings;
  takeOver: boolean;
  /** Whether this server has not stored anything yet. */
  isFirst: boolean;
  files: { path: string; bytes: number; isAfterLoss: boolean }[];
  /** Paths of databases whose last commits may not be on the disk. */
  skipped: readonly string[];
  cut: Cut;
  /** Whether the server stops. */
  isLast: boolean;
}

export interface PassAnswer {
  uploads: number;
  /** Whether something waits for the next pass. */
  hasMore: boolean;
  /** Files of which commits were missed, and that are copied anew. */
  broken: string[];
  /** Problems of steps that will be tried again. */
  problems: string[];
  verifiedAt: number | null;
}

interface ShipperDeps {
  settings: ShipSettings;
  store: Store;
  clock: Clock;
  ids: Ids;
}

/** Stores what the server hands over. It lives as long as its process. */
export class Shipper {
  readonly #deps: ShipperDeps;
  readonly #incarnation: string;
  readonly #archive: Archive;
  readonly #tracked: TrackedFiles;
  readonly #tables: HashTables;
  readonly #plain: PlainFiles;
  readonly #contents: Contents;
  #builder = new SegmentBuilder();
  /** A segment that could not be stored yet. */
  #unsent: BuiltSegment | null = null;
  #copyCounter = 0;
  /** Files of records that are in memory, until their entries are stored. */
  readonly #consumed = new Set<string>();
  #uploads = 0;
  #broken: string[] = [];
  #problems: string[] = [];
  #manifestAt = 0;
  #reconciledAt: number | null = null;
  #prunedAt: number;
  /** Files that had a WAL when all were compared, and of which the server had said nothing. */
  readonly #suspects: string[] = [];
  readonly #d1 = new Map<string, string>();

  private constructor(deps: ShipperDeps, opened: { archive: Archive; incarnation: string; wasAnothers: boolean }) {
    this.#deps = deps;
    this.#archive = opened.archive;
    this.#incarnation = opened.incarnation;
    const { archive } = opened;
    const { settings, store, ids, clock } = deps;
    const { dataDirectory } = settings;
    this.#prunedAt = clock.now();
    this.#tables = new HashTables(dataDirectory);
    this.#plain = new PlainFiles({ dataDirectory, store, archive });
    this.#contents = new Contents({ dataDirectory, store, archive });
    this.#tracked = new TrackedFiles({
      dataDirectory,
      archive,
      store,
      ids,
      tables: this.#tables,
      bases: new Bases(BASES_MAX_BYTES),
      builder: () => this.#builder,
      nextCopyKey: (id) =>
        copyKey(id, lastOf(archive.manifest).counter + 1, `${this.#incarnation}-${++this.#copyCounter}`),
      onBroken: (path) => this.#broken.push(path),
      reason: opened.wasAnothers ? "replaced" : "unread",
    });
  }

  /** Makes this process the one that stores, and reads what is stored. Errors: ForeignPlace, Displaced, those of the store. */
  static async open(
    { settings, takeOver, isFirst }: PassRequest,
    { clock, ids }: { clock: Clock; ids: Ids },
  ): Promise<Shipper> {
    const { dataDirectory, owner, server, keepDays } = settings;
    const store = openStore(settings.to, clock);
    const folder = join(dataDirectory, CONTINUOUS_FOLDER);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) if (name.endsWith(COPY_ENDING)) rmSync(join(folder, name));
    const incarnation = ids.uuid().slice(0, 13).replace("-", "");
    const { wasAnothers } = await claimPlace(store, { owner, incarnation, server }, { takeOver, isFirst, clock });
    const archive = (await loadArchive(store)) ?? new Archive(emptyManifest());
    Object.assign(archive.manifest, { incarnation, keepDays });
    const shipper = new Shipper({ settings, store, clock, ids }, { archive, incarnation, wasAnothers });
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
    await this.#tracked.publish(cut, () => true);
    for (const file of request.files) await this.#consume(file, request);
    await this.#compare(cut, isLast);
    this.#builder.plain.push(...(await this.#plain.collect(cut)));
    await this.#tracked.publishCopies();
    await this.#settleContents(isLast ? LAST_CONTENTS_MS : request.settings.everyMs);
    await this.#flush(cut);
    for (const { path } of request.files) this.#consumed.delete(path);
    this.#tracked.save(cut.at, { isLast });
    if (!isLast) this.#tracked.copyDue(cut);
    await this.#keepManifest(cut, isLast);
    const { manifest } = this.#archive;
    const hasMore = this.#suspects.length > 0 || !this.#tracked.areReady || !this.#builder.isEmpty;
    const { verifiedAt } = manifest;
    return { uploads: this.#uploads, hasMore, broken: this.#broken, problems: this.#problems, verifiedAt };
  }

  /** Takes the records of one file. */
  async #consume(file: PassRequest["files"][number], { skipped, cut, settings }: PassRequest): Promise<void> {
    if (this.#consumed.has(file.path)) return;
    if (file.isAfterLoss) {
      this.#tracked.distrust();
      this.#reconciledAt = null;
      this.#broken.push("*");
    }
    const left = new Set(skipped.map((path) => relative(settings.dataDirectory, path).split(sep).join("/")));
    const descriptor = openSync(file.path, "r");
    try {
      const read = (offset: number, length: number): Uint8Array<ArrayBuffer> => {
        const bytes = new Uint8Array(length);
        readSync(descriptor, bytes, 0, length, offset);
        return bytes;
      };
      for (const { record, content } of decodeRecords(file.bytes, read)) {
        if (left.has(`${record.path}${ENDING}`)) continue;
        if (record.type === "content") this.#contents.add(record.path);
        else this.#tracked.take(record, content);
        if (this.#builder.bytes > SEGMENT_MAX_BYTES) await this.#flush(cut);
      }
      this.#consumed.add(file.path);
    } finally {
      closeSync(descriptor);
    }
  }

  /** Compares files with what is stored: all of them at first and each hour, those of d1 whenever they have changed. */
  async #compare(cut: Cut, isLast: boolean): Promise<void> {
    const { clock } = this.#deps;
    const isDue = this.#reconciledAt === null || cut.at - this.#reconciledAt >= RECONCILE_EVERY_MS;
    const former = this.#suspects.splice(0);
    if (isDue) this.#reconcile(cut);
    // If the server had one of them open, it has said so by now: a crash has left its WAL. At a stop all files are closed.
    for (const path of isLast ? [...former, ...this.#suspects.splice(0)] : former) {
      if (!this.#tracked.has(path)) this.#tracked.visit(path, null);
    }
    if (isDue && !isLast) await this.#contents.reconcile(cut.at);
    this.#lookAtD1();
    const startedAt = clock.now();
    this.#tracked.scan(cut, {
      isOver: (bytes) => bytes > SEGMENT_MAX_BYTES || clock.now() - startedAt > SCAN_PASS_MS,
      onFailure: (path, cause) => {
        if (existsSync(join(this.#deps.settings.dataDirectory, `${path}${ENDING}`))) {
          this.#problems.push(`${path} could not be compared: ${reasonOf(cause)}`);
        }
      },
    });
    // Each commit of d1 is synced before it can be read, and so is a file that has been closed.
    await this.#tracked.publish(cut, (path) => isLast || path.startsWith(D1));
  }

  #reconcile(cut: Cut): void {
    const { dataDirectory } = this.#deps.settings;
    const present = new Set<string>();
    for (const { path, kind } of scanFiles(dataDirectory)) {
      if (kind !== "database") continue;
      const name = path.slice(0, -ENDING.length);
      present.add(name);
      const file = join(dataDirectory, path);
      const isClosed = !existsSync(`${file}-wal`);
      if (path.startsWith(D1)) continue;
      if (isClosed) this.#tracked.visit(name, stampOf(file));
      else if (this.#reconciledAt === null) this.#suspects.push(name);
    }
    for (const { path, removed } of this.#archive.manifest.files) {
      if (removed === null && !present.has(path) && !existsSync(join(dataDirectory, `${path}${ENDING}`))) {
        this.#tracked.remove(path, cut);
      }
    }
    this.#reconciledAt = cut.at;
  }

  #lookAtD1(): void {
    const { dataDirectory } = this.#deps.settings;
    for (const { path, kind } of scanFiles(dataDirectory, D1.slice(0, -1))) {
      if (kind !== "database") continue;
      const file = join(dataDirectory, path);
      const state = JSON.stringify([stampOf(file), stampOf(`${file}-wal`)]);
      if (this.#d1.get(path) === state) continue;
      this.#d1.set(path, state);
      this.#tracked.look(path.slice(0, -ENDING.length));
    }
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
      missing,
    });
    this.#builder = new SegmentBuilder();
    await this.#send(this.#unsent);
  }

  async #send({ description, sha256, bytes }: BuiltSegment): Promise<void> {
    const { store } = this.#deps;
    await requireClaim(store, this.#incarnation);
    const key = segmentKey(description.counter, this.#incarnation);
    await store.put(key, bytes);
    this.#archive.apply(factsOf(key, { description, sha256, bytes: bytes.byteLength }), description);
    this.#unsent = null;
    this.#uploads++;
  }

  /** Stores the manifest each minute, at a stop, and when the first copies are complete. */
  async #keepManifest(cut: Cut, isLast: boolean): Promise<void> {
    const { manifest } = this.#archive;
    const isFirstWhole =
      manifest.from === null && this.#reconciledAt !== null && this.#suspects.length === 0 && this.#tracked.areReady;
    if (isFirstWhole) Object.assign(manifest, { from: cut.at, fromPlace: cut.place });
    if (!isLast && !isFirstWhole && cut.at - this.#manifestAt < MANIFEST_EVERY_MS) return;
    const isPruning = !isLast && cut.at - this.#prunedAt >= RETENTION_EVERY_MS;
    const outdated = isPruning ? await takeOutdated(this.#deps.store, this.#archive, cut.at) : [];
    if (isPruning) this.#prunedAt = cut.at;
    await this.#listSegments();
    await this.#storeManifest();
    for (const key of outdated) {
      await this.#deps.store.remove(key).catch((cause: unknown) => {
        // An object lock refuses it until its time.
        this.#problems.push(`${key} could not be removed: ${reasonOf(cause)}`);
      });
    }
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
      manifest.indexes.push({ key, sha256, bytes: content.byteLength, from, to });
      manifest.lastIndexed = { counter: last.counter, sha256: last.sha256 };
      manifest.segments.splice(0, segments.length);
    }
  }

  async #storeManifest(): Promise<void> {
    const { store, clock } = this.#deps;
    const { manifest } = this.#archive;
    manifest.writtenAt = clock.now();
    manifest.missing = this.#contents.missing;
    await requireClaim(store, this.#incarnation);
    await store.put(MANIFEST_KEY, containerOf(manifest).content);
    this.#manifestAt = manifest.writtenAt;
  }
}

function containerOf(description: object): { content: Uint8Array<ArrayBuffer>; sha256: string } {
  const chunks: Uint8Array[] = [];
  const { sha256 } = new ContainerWriter((bytes) => chunks.push(bytes)).finish(description);
  return { content: new Uint8Array(Buffer.concat(chunks)), sha256 };
}

const emptyManifest = (): Manifest => ({
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
  plain: [],
  gaps: [],
  missing: [],
  gone: [],
  verifiedAt: null,
});
