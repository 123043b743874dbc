import type { SpoolRecord } from "../../../src/server/areas/backup/continuous/capture/records.ts";
import { PageHashes } from "../../../src/server/areas/backup/continuous/format/pages.ts";
import { BASES_MAX_BYTES } from "../../../src/server/areas/backup/continuous/limits.ts";
import { Bases } from "../../../src/server/areas/backup/continuous/ship/bases.ts";
import type { ShipDisk, ShipParts } from "../../../src/server/areas/backup/continuous/ship/disk.ts";
import { Shipper, type ShipSettings } from "../../../src/server/areas/backup/continuous/ship/shipper.ts";
import type { KnownFile } from "../../../src/server/areas/backup/continuous/ship/tables.ts";
import { FRAME_HEADER_BYTES } from "../../../src/server/db/capture/commit-frames.ts";
import { OPEN_MARK } from "../../../src/server/db/writer/commit-gate.ts";
import type { Random } from "../../support/random.ts";
import {
  COMMIT_PAGE,
  commitPageOf,
  cutWal,
  emptyWal,
  framesOf,
  headerPage,
  joined,
  leftFrames,
  PAGE_BYTES,
  type Pages,
  type SimulatedFile,
} from "./simulated-file.ts";
import { scanOf } from "./simulated-scan.ts";
import { SimulatedStore } from "./simulated-store.ts";

/** Rules on which continuous backup rests; each can be switched off. */
export const RULES = [
  "sync before upload",
  "base check",
  "order over files",
  "comparison after a change outside the WAL",
  "mark of VACUUM",
  "entry of a deletion",
  "commits of d1",
  "commits of jobs",
] as const;
export type Rule = (typeof RULES)[number];

/** One change of a file, in the order in which they happened. pages null: the file was removed. */
export interface Happened {
  path: string;
  place: number;
  at: number;
  pages: Pages | null;
}

interface Spooled {
  path: string;
  bytes: number;
  isAfterLoss: boolean;
  records: { record: SpoolRecord; content: Uint8Array<ArrayBuffer> }[];
}

const PATHS = ["system", "jobs", "databases/shared", "databases/t/a", "databases/t/b", "d1/x"];
const LASTING = new Set(["system", "jobs", "databases/shared", "d1/x"]);
const PAGES_MAX = 9;
const START = Date.UTC(2026, 0, 1);
const NO_BYTES = new Uint8Array(0);
const isD1 = (path: string): boolean => path.startsWith("d1/");
/** Whether a VACUUM has begun whose end has no number yet. */
const isMarked = ({ row }: SimulatedFile): boolean => row.number > 0 && row.nonce === OPEN_MARK;

/** A base whose content is not looked at. */
class UncheckedBases extends Bases {
  readonly #pages = new Map<string, Uint8Array>();
  override get(id: string, page: number): Uint8Array | null {
    return this.#pages.get(`${id} ${page}`) ?? null;
  }
  override set(id: string, page: number, version: { page: Uint8Array; hash: string }): void {
    this.#pages.set(`${id} ${page}`, version.page.slice());
  }
}

/** Times for which merged objects stand: histories last some hundreds of milliseconds. */
const MERGED_SPANS_MS = [10, 100, 400];

/** A server with its databases, disk and clock, and the process that stores: everything but that process is simulated. */
export class SimulatedServer {
  readonly store: SimulatedStore;
  readonly files = new Map<string, SimulatedFile>();
  happened: Happened[] = [];
  now = START;
  readonly #random: Random;
  readonly #off: Rule | null;
  #order = START * 1000;
  #records: Spooled["records"] = [];
  #waiting: Spooled[] = [];
  #spoolCount = 0;
  /** Whether records are dropped, because the disk is full. */
  #isLost = false;
  #hasRoom = false;
  #isAfterLoss = false;
  #shipper: Shipper | null = null;
  #hasStored = false;
  #server = "";
  #stamps = 0;
  readonly #tables = new Map<
    string,
    { words: Uint32Array<ArrayBuffer>; pageBytes: number } & Omit<KnownFile, "hashes">
  >();

  constructor(random: Random, off: Rule | null) {
    this.#random = random;
    this.#off = off;
    this.store = new SimulatedStore(random);
    this.#start();
  }

  /** Does something at random. */
  step(): void {
    const random = this.#random;
    this.#passTime();
    const file = this.files.get(random.pick(PATHS));
    const chance = random.below(100);
    if (file === undefined) this.#create(random.pick(PATHS));
    else if (file.opened === null) this.#openOrChange(file);
    else if (isMarked(file)) this.#commit(file, 1);
    else if (isD1(file.path) && chance < 10) this.#vacuum(file);
    else if (chance < 70) this.#commit(file, 1 + random.below(3));
    else if (chance < 82) this.#restartWal(file);
    else if (chance < 92) this.#close(file);
    else if (!LASTING.has(file.path)) this.#remove(file);
    if (random.chance(0.02)) this.#isLost = true;
  }

  /** Ends the server, and what it had not handed over; `isPowerCut`: also what was not synced. */
  kill({ isPowerCut }: { isPowerCut: boolean }): void {
    this.#records = [];
    this.#waiting = [];
    [this.#isLost, this.#isAfterLoss] = [false, false];
    this.#shipper = null;
    for (const file of this.files.values()) {
      if (file.opened === null) continue;
      if (isPowerCut) this.#undo(file);
      file.hasLeftWal = file.wal.frames > 0;
      file.opened = null;
    }
    if (isPowerCut && this.#random.chance(0.3)) this.#tables.clear();
    this.#start();
  }

  /** Ends the storing process only. */
  endShipper(): void {
    this.#shipper = null;
  }

  /** Closes all files, stores everything, and begins anew. */
  async stop(): Promise<void> {
    for (const file of this.files.values()) if (file.opened !== null) this.#close(file);
    const meanwhile = this.store.meanwhile;
    this.store.meanwhile = () => {};
    await this.pass({ isLast: true });
    this.store.meanwhile = meanwhile;
    this.kill({ isPowerCut: false });
  }

  heal(): void {
    this.store.mood = "well";
    this.store.meanwhile = () => {};
    this.#hasRoom = true;
  }

  /** Hands over what was committed. Resolves to whether something waits for another pass; null: it failed. */
  async pass({ isLast }: { isLast: boolean }): Promise<boolean | null> {
    const cut = { at: this.now, place: this.#take() };
    const isLosing = this.#isLost;
    if (this.#records.length > 0 || this.#isAfterLoss) {
      const path = `${++this.#spoolCount}`;
      this.#waiting.push({ path, bytes: 0, isAfterLoss: this.#isAfterLoss, records: this.#records });
      [this.#records, this.#isAfterLoss] = [[], false];
    }
    // Records are written again with the next file.
    if (this.#isLost && (this.#hasRoom || this.#random.chance(0.5))) [this.#isLost, this.#isAfterLoss] = [false, true];
    const files = [...this.#waiting];
    if (this.#off !== "sync before upload") for (const file of this.files.values()) this.#sync(file);
    const isFirst = !this.#hasStored;
    const request = {
      settings: this.#settings(),
      takeOver: false,
      isFirst,
      verifiedAt: null,
      files,
      skipped: [],
      cut,
      isLosing,
      isLast,
    };
    try {
      this.#shipper ??= await Shipper.open(request, this.#parts());
      const { hasMore } = await this.#shipper.pass(request);
      this.#waiting = this.#waiting.slice(files.length);
      this.#hasStored = true;
      return hasMore;
    } catch (cause) {
      if (this.store.mood === "well") throw cause;
      return null;
    }
  }

  #start(): void {
    this.#hasStored = false;
    this.#server = this.#uuid();
  }

  #passTime(): void {
    const random = this.#random;
    const chance = random.below(1000);
    if (chance < 20) this.now -= random.below(5000);
    else if (chance < 30) this.now += 3_700_000;
    else if (chance < 33) this.now += 90_000_000;
    else this.now += random.below(400);
  }

  #take(): number {
    if (this.#off === "order over files") return (this.now - START) * 1000 + START * 1000 + this.#random.below(1000);
    this.#order = Math.max(this.#order + 1, this.now * 1000);
    return this.#order;
  }

  #uuid(): string {
    const hex = Array.from({ length: 32 }, () => this.#random.below(16).toString(16)).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  #spool(record: SpoolRecord, content: Uint8Array<ArrayBuffer> = NO_BYTES): void {
    if (this.#isLost) return;
    if (this.#off === "commits of jobs" && record.path === "jobs" && record.type === "frames") return;
    if (this.#off === "commits of d1" && isD1(record.path) && record.type === "frames") return;
    if (this.#off === "entry of a deletion" && record.type === "removed") return;
    this.#records.push({ record, content });
  }

  #note(file: SimulatedFile, at: number, place: number): void {
    this.happened.push({ path: file.path, at, place, pages: file.pages });
    // A query of d1 is synced before anybody can read what it has changed.
    if (isD1(file.path)) this.#sync(file);
  }

  #create(path: string): void {
    if (this.files.has(path)) return;
    const [id, at, place] = [this.#uuid(), this.now, this.#take()];
    const row = { number: 0, nonce: 0, at: 0, place: 0, file: "" };
    const file: SimulatedFile = {
      path,
      id,
      row,
      pages: [headerPage(), commitPageOf(row)],
      opened: { place, nonce: this.#random.below(2 ** 40) },
      wal: emptyWal(this.#random.below(2 ** 31)),
      hasLeftWal: false,
      stamp: this.#stamp(),
      durable: null,
    };
    this.files.set(path, file);
    this.#note(file, at, place);
    this.#spool(
      { type: "opened", path, file: id, page: COMMIT_PAGE, isNew: true, isRewritten: false, at, place, stamp: null },
      joined(file.pages),
    );
  }

  #openOrChange(file: SimulatedFile): void {
    const random = this.#random;
    const isOutside = random.chance(0.15);
    const [at, place] = [this.now, this.#take()];
    const isUnchanged = !file.hasLeftWal && (!isOutside || this.#off === "comparison after a change outside the WAL");
    const stamp = isUnchanged ? file.stamp : null;
    for (const { left, content } of file.hasLeftWal ? leftFrames(file) : []) {
      this.#spool({ type: "left", path: file.path, ...left }, content);
    }
    if (file.row.number === 0) file.id = this.#uuid();
    if (file.hasLeftWal) file.stamp = this.#stamp();
    file.opened = { place, nonce: random.below(2 ** 40) };
    file.wal = emptyWal(random.below(2 ** 31));
    file.hasLeftWal = false;
    // Pages change that no frame has.
    if (isOutside) {
      file.pages = file.pages.map((page, index) => (index < COMMIT_PAGE ? page : this.#content()));
      if (!isUnchanged) file.stamp = this.#stamp();
    }
    const { path, id } = file;
    const isRewritten = (isOutside && !isUnchanged) || isMarked(file);
    this.#spool({ type: "opened", path, file: id, page: COMMIT_PAGE, isNew: false, isRewritten, at, place, stamp });
    if (isOutside) {
      this.#commit(file, 1);
      this.#sync(file);
    }
    if (random.chance(0.3)) this.#commit(file, 1 + random.below(2));
  }

  /** Changes every page in a commit without a number, behind an open mark. */
  #vacuum(file: SimulatedFile): void {
    const { opened, wal } = file;
    if (opened === null) return;
    const first = wal.frames;
    const [at, place] = [this.now, this.#take()];
    const nonce = this.#off === "mark of VACUUM" ? opened.nonce : OPEN_MARK;
    file.row = { number: this.#nextNumber(file, opened.nonce), nonce, at, place, file: file.id };
    const commitPage = commitPageOf(file.row);
    const marked = file.pages.map((page, index) => (index === COMMIT_PAGE - 1 ? commitPage : page));
    const moved = marked.map((page, index) => (index < COMMIT_PAGE ? page : this.#content()));
    const frames = [
      framesOf([COMMIT_PAGE], marked),
      framesOf(
        [...moved.keys()].map((index) => index + 1),
        moved,
      ),
    ];
    for (const [index, pages] of [marked, moved].entries()) {
      file.pages = pages;
      const own = frames[index] ?? NO_BYTES;
      wal.commits.push({ row: file.row, frames: own });
      wal.frames += own.byteLength / (FRAME_HEADER_BYTES + PAGE_BYTES);
      this.#note(file, at, place);
    }
    const content = new Uint8Array(Buffer.concat(frames));
    this.#spool({ type: "frames", path: file.path, pageBytes: PAGE_BYTES, first, salts: wal.salts }, content);
  }

  #nextNumber({ row }: SimulatedFile, nonce: number): number {
    return Math.max(row.number + 1, row.nonce === nonce ? 0 : this.now * 1000);
  }

  /** Commits, and hands the frames of all of them over at once. */
  #commit(file: SimulatedFile, count: number): void {
    const random = this.#random;
    const { opened, wal } = file;
    if (opened === null) return;
    const first = wal.frames;
    const frames: Uint8Array[] = [];
    for (let each = 0; each < count; each++) {
      const [at, place] = [this.now, this.#take()];
      const number = this.#nextNumber(file, opened.nonce);
      file.row = { number, nonce: opened.nonce, at, place, file: file.id };
      const pages = [...file.pages];
      const changed = new Set<number>([COMMIT_PAGE]);
      pages[COMMIT_PAGE - 1] = commitPageOf(file.row);
      if (pages.length > 3 && random.chance(0.1)) pages.length = 3 + random.below(pages.length - 3);
      for (let change = random.below(3); change >= 0; change--) {
        const page = 3 + random.below(Math.min(pages.length, PAGES_MAX) - 1);
        if (page > pages.length + 1) continue;
        pages[page - 1] = this.#changed(pages[page - 1]);
        changed.add(page);
      }
      file.pages = pages;
      const own = framesOf([...changed], pages);
      frames.push(own);
      wal.commits.push({ row: file.row, frames: own });
      wal.frames += changed.size;
      this.#note(file, at, place);
      this.now += random.below(2);
    }
    const content = new Uint8Array(Buffer.concat(frames));
    this.#spool({ type: "frames", path: file.path, pageBytes: PAGE_BYTES, first, salts: wal.salts }, content);
  }

  #changed(page: Uint8Array<ArrayBuffer> | undefined): Uint8Array<ArrayBuffer> {
    const made = page?.slice() ?? new Uint8Array(PAGE_BYTES);
    made[this.#random.below(PAGE_BYTES)] = this.#random.below(256);
    made[this.#random.below(PAGE_BYTES)] = this.#random.below(256);
    return made;
  }

  #content(): Uint8Array<ArrayBuffer> {
    return this.#changed(this.#changed(undefined));
  }

  #restartWal(file: SimulatedFile): void {
    if (file.wal.frames > 0) file.stamp = this.#stamp();
    file.wal = emptyWal(this.#random.below(2 ** 31));
  }

  #close(file: SimulatedFile): void {
    if (file.opened === null) return;
    if (file.wal.frames > 0) file.stamp = this.#stamp();
    this.#sync(file);
    this.#spool({ type: "closed", path: file.path, place: file.opened.place, stamp: file.stamp });
    file.opened = null;
    file.wal = emptyWal(0);
  }

  #remove(file: SimulatedFile): void {
    const [at, place] = [this.now, this.#take()];
    const { path } = file;
    this.#spool({ type: "removed", path, at, place });
    this.files.delete(path);
    this.happened.push({ path, at, place, pages: null });
  }

  #sync(file: SimulatedFile): void {
    const { row, pages, id } = file;
    file.durable = { row, pages, id, events: this.happened.length };
  }

  /** Takes back what was not on the disk. */
  #undo(file: SimulatedFile): void {
    const { path, durable } = file;
    const events = durable?.events ?? this.happened.findLastIndex((one) => one.path === path && one.pages === null) + 1;
    const lost = new Set(this.happened.slice(events).filter((one) => one.path === path && one.pages !== null));
    for (const other of this.files.values()) {
      if (other.durable === null) continue;
      const before = this.happened.slice(0, other.durable.events).filter((one) => !lost.has(one)).length;
      other.durable.events = before;
    }
    this.happened = this.happened.filter((one) => !lost.has(one));
    if (durable === null) this.files.delete(path);
    else Object.assign(file, { row: durable.row, pages: durable.pages, id: durable.id });
    cutWal(file);
  }

  #stamp() {
    return { mtimeMs: ++this.#stamps, bytes: PAGE_BYTES };
  }

  #settings(): ShipSettings {
    return {
      dataDirectory: "/data",
      to: { folder: "/store" },
      keepDays: 7,
      everyMs: 1000,
      owner: { id: "owner", directory: "/data" },
      server: this.#server,
    };
  }

  #parts(): ShipParts & { clock: ConstructorClock; ids: SimulatedIds; bases: Bases; mergedSpansMs: readonly number[] } {
    const { store } = this;
    const tables: ShipParts["tables"] = {
      read: (id, entry) => {
        const known = this.#tables.get(id);
        if (known === undefined || known.entry !== entry) return null;
        const hashes = new PageHashes(known.pageBytes, known.words.slice());
        return { hashes, entry, stamp: known.stamp };
      },
      save: (id, { hashes, entry, stamp }) => {
        this.#tables.set(id, { words: hashes.words.slice(), pageBytes: hashes.pageBytes, entry, stamp });
      },
      forget: (id) => void this.#tables.delete(id),
    };
    return {
      store,
      disk: this.#disk(),
      tables,
      plain: () => ({ collect: async () => [] }),
      contents: () => ({ add() {}, settle: async () => {}, reconcile: async () => {}, missing: [], lag: null }),
      clock: { now: () => this.now, after: () => () => {} },
      ids: { uuid: () => this.#uuid(), secret: () => this.#uuid() },
      mergedSpansMs: MERGED_SPANS_MS,
      bases: this.#off === "base check" ? new UncheckedBases(0) : new Bases(BASES_MAX_BYTES / 4096),
    };
  }

  #disk(): ShipDisk {
    const { files } = this;
    return {
      databases: () => files.keys(),
      exists: (path) => files.has(path),
      isOpen: (path) => files.get(path)?.opened != null || files.get(path)?.hasLeftWal === true,
      stamp: (path) => files.get(path)?.stamp ?? null,
      left: (path) => {
        const file = files.get(path);
        return file?.hasLeftWal === true && file.row.number > 0 ? leftFrames(file) : [];
      },
      scan: (path, options) => {
        const file = files.get(path);
        if (file === undefined) throw new Error(`${path} is gone`);
        return scanOf(file, options, this.store.copies);
      },
      records: ({ path }) => inOneMemory(this.#waiting.find((one) => one.path === path)?.records ?? []),
      removeCopy: (path) => void this.store.copies.delete(path),
    };
  }
}

/** Passes records on as they are read from a file: what follows overwrites their content. */
function* inOneMemory(records: Spooled["records"]): Generator<Spooled["records"][number]> {
  const memory = new Uint8Array(records.reduce((most, { content }) => Math.max(most, content.byteLength), 0));
  for (const { record, content } of records) {
    memory.fill(0xff);
    memory.set(content);
    yield { record, content: memory.subarray(0, content.byteLength) };
  }
}

type ConstructorClock = Parameters<typeof Shipper.open>[1]["clock"];
type SimulatedIds = Parameters<typeof Shipper.open>[1]["ids"];
