import { rmSync } from "node:fs";
import { join } from "node:path";
import { unreachable } from "../../../../../kernel/errors.ts";
import type { Ids } from "../../../../../kernel/ids.ts";
import { CONTINUOUS_FOLDER } from "../../layout.ts";
import type { FileRecord, FileStamp } from "../capture/records.ts";
import type { Archive } from "../format/archive.ts";
import type { Position } from "../format/entries.ts";
import type { GapReason, StoredFile } from "../format/manifest.ts";
import { PageHashes } from "../format/pages.ts";
import {
  COPY_AGE_MAX_MS,
  ENTRIES_OVER_COPY_BYTES,
  TABLE_SAVED_AT_ONCE_BYTES,
  TABLE_SAVED_EVERY_MS,
} from "../limits.ts";
import type { Store } from "../store/store.ts";
import type { Bases } from "./bases.ts";
import { Chain, commitsOf, FRAME_HEADER_BYTES } from "./chain.ts";
import { type Scanned, scanFile } from "./scan.ts";
import type { SegmentBuilder } from "./segment.ts";
import type { HashTables } from "./tables.ts";
import { type Cut, follows, isSame, pageBytesOf, type Tracked } from "./tracked-file.ts";

interface TrackedDeps {
  dataDirectory: string;
  archive: Archive;
  tables: HashTables;
  bases: Bases;
  builder: () => SegmentBuilder;
  store: Store;
  ids: Ids;
  /** Returns the name of the next copy. */
  nextCopyKey: (id: string) => string;
  onBroken: (path: string) => void;
  /** Why moments of files are missing that are not as the store has them. */
  reason: GapReason;
}

/** Follows each database file: what of it is in the store, and what comes next. */
export class TrackedFiles {
  readonly #deps: TrackedDeps;
  readonly #files = new Map<string, Tracked>();

  constructor(deps: TrackedDeps) {
    this.#deps = deps;
  }

  /** Whether every file is as the store, or entries that wait, have it. */
  get areReady(): boolean {
    for (const { state } of this.#files.values()) if (state !== "ready") return false;
    return true;
  }

  take(record: FileRecord, content: Uint8Array<ArrayBuffer>): void {
    switch (record.type) {
      case "opened":
        this.#opened(record, content);
        break;
      case "frames":
        this.#frames(record, content);
        break;
      case "broken":
        this.#break(record.path);
        break;
      case "closed":
        this.#closed(record);
        break;
      case "removed":
        this.remove(record.path, record);
        break;
      default:
        unreachable(record);
    }
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  /** Has every file compared: records were lost. */
  distrust(): void {
    for (const file of this.#files.values()) if (file.state === "ready") this.#distrust(file, "unread");
  }

  /** Looks at a closed file that may have changed. */
  visit(path: string, stamp: FileStamp | null): void {
    const known = this.#files.get(path);
    if (known !== undefined && (known.openedPlace !== null || known.state !== "ready" || isSame(known.stamp, stamp)))
      return;
    if (known === undefined) this.#files.set(path, this.#resumed(path, stamp, null));
    else this.#distrust(known, "unread");
  }

  /** Has a file compared that is of d1, whose commits nobody announces. */
  look(path: string): void {
    const known = this.#files.get(path);
    if (known === undefined) this.#files.set(path, this.#resumed(path, null, null));
    else if (known.state === "ready") known.state = "unknown";
  }

  remove(path: string, { at, place }: Cut): void {
    const { archive, builder, tables } = this.#deps;
    const file = this.#files.get(path);
    const id = file?.chain?.id ?? archive.byPath(path)?.id;
    // A record that comes again is older than the file that has the name now.
    if (file !== undefined && file.lastOpenedPlace > place) return;
    this.#files.delete(path);
    this.#dropCopy(file);
    if (id === undefined || (archive.byId(id)?.removed ?? null) !== null) return;
    builder().removed.push({ id, path, at, place });
    tables.forget(id);
  }

  /** Compares files that have to be, until `isOver`. Errors go to `onFailure`: the next pass tries again. */
  scan(
    cut: Cut,
    options: {
      isOver: (bytes: number) => boolean;
      onFailure: (path: string, cause: unknown) => void;
    },
  ): void {
    const { isOver, onFailure } = options;
    let bytes = 0;
    for (const file of this.#files.values()) {
      if (file.state !== "unknown") continue;
      try {
        file.scanned = this.#scanOf(file, cut, { asCopy: false });
        file.state = "scanned";
        const { found } = file.scanned;
        if (found.kind === "full" || found.kind === "changed")
          bytes += found.changed.pages.size * file.scanned.pageBytes;
      } catch (cause) {
        onFailure(file.path, cause);
      }
      if (isOver(bytes)) return;
    }
  }

  /** Stores what comparisons have found. `only`: of which files. */
  async publish(cut: Cut, only: (path: string) => boolean): Promise<void> {
    for (const file of this.#files.values()) {
      if (file.state === "scanned" && only(file.path)) await this.#publish(file, cut);
    }
  }

  /** Takes full copies of files whose entries have grown, or are old; one of all files at a time. */
  copyDue(cut: Cut): void {
    for (const file of this.#files.values()) {
      if (file.state !== "ready" || file.copy !== null || file.chain?.last == null || !this.#isCopyDue(file, cut))
        continue;
      const { row, pages, found } = this.#scanOf(file, cut, { asCopy: true });
      if (found.kind !== "copy") return;
      const { last } = file.chain;
      const position = row ?? last;
      const checksum = found.hashes.checksum;
      const isNow = position.number === last.number;
      const { number, nonce, at, place } = position;
      file.copy = {
        number,
        checksum,
        file: found.copy,
        position: { number, nonce, at, place },
        pages,
        isEqual: isNow && checksum === last.checksum,
      };
      // A file without numbers has changed meanwhile: later.
      if (isNow && !file.copy.isEqual) this.#unequal(file, row === null);
      return;
    }
  }

  /** Stores the copies that have proved equal. */
  async publishCopies(): Promise<void> {
    const { store, builder, nextCopyKey } = this.#deps;
    for (const file of this.#files.values()) {
      const { copy, chain } = file;
      if (copy === null || !copy.isEqual || chain === null) continue;
      const key = nextCopyKey(chain.id);
      await store.putFile(key, copy.file.path);
      const { position, pages, checksum } = copy;
      const { sha256, bytes } = copy.file;
      const { pageBytes } = chain.hashes;
      const of = { id: chain.id, path: file.path, pageBytes, pages, checksum, isBase: false };
      builder().copies.push({ ...of, copy: { ...position, key, sha256, isSegment: false, bytes } });
      this.#dropCopy(file);
    }
  }

  /** Keeps what is known of files in the data directory; their entries are in the store. Large tables are kept less often. */
  save(now: number, { isLast }: { isLast: boolean }): void {
    const { archive, tables } = this.#deps;
    for (const [path, file] of this.#files) {
      const { chain, state, openedPlace, saved } = file;
      if (chain?.last == null || state !== "ready") continue;
      const { entry } = chain.last;
      if (archive.byId(chain.id)?.last.entry !== entry) continue;
      const stamp = openedPlace === null ? file.stamp : null;
      const isSmall = chain.hashes.words.byteLength <= TABLE_SAVED_AT_ONCE_BYTES;
      const isDue = isLast || isSmall || openedPlace === null || now - (saved?.at ?? 0) >= TABLE_SAVED_EVERY_MS;
      const isSaved = saved?.entry === entry && (saved.stamp === stamp || isSame(saved.stamp, stamp));
      if (!isSaved && isDue) {
        tables.save(chain.id, { hashes: chain.hashes, entry, stamp });
        file.saved = { entry, stamp, at: now };
      }
      // A closed file is taken up again from what was kept.
      if (openedPlace === null && !path.startsWith("d1/")) this.#forgetClosed(path);
    }
  }

  #forgetClosed(path: string): void {
    const file = this.#files.get(path);
    if (file?.copy === null) this.#files.delete(path);
  }

  #opened(record: Extract<FileRecord, { type: "opened" }>, content: Uint8Array<ArrayBuffer>): void {
    const { path, file: id, page, place } = record;
    const known = this.#files.get(path);
    if (known !== undefined && known.lastOpenedPlace >= place) return;
    if (record.isNew && this.#deps.archive.byId(id) === undefined) {
      this.#files.set(path, this.#made(record, content));
      return;
    }
    const isOwn = known?.chain != null && known.chain.id === id;
    // What the chain in memory knows may not be in the store yet, so that nothing is read from there.
    const next = isOwn ? known : this.#resumed(path, record.stamp, { id, page });
    if (isOwn) {
      const isReady = known.state === "ready" && known.openedPlace === null && isSame(known.stamp, record.stamp);
      known.chain?.openedWith(page);
      if (!isReady) this.#distrust(known, known.reason);
    }
    next.frames = null;
    next.openedPlace = place;
    next.lastOpenedPlace = place;
    this.#files.set(path, next);
  }

  #closed({ path, place, stamp }: Extract<FileRecord, { type: "closed" }>): void {
    const file = this.#files.get(path);
    if (file?.openedPlace !== place) return;
    file.openedPlace = null;
    file.stamp = stamp;
  }

  /** Begins the chain of a file that was made now: nothing of it is missing. */
  #made(record: Extract<FileRecord, { type: "opened" }>, content: Uint8Array<ArrayBuffer>): Tracked {
    const { path, file: id, page, at, place } = record;
    const pageBytes = pageBytesOf(content);
    const chain = new Chain(
      { id, path, commitPage: page },
      { hashes: new PageHashes(pageBytes), last: null },
      this.#deps.bases,
    );
    const pages = new Map<number, Uint8Array>();
    const count = content.byteLength / pageBytes;
    for (let number = 1; number <= count; number++) {
      pages.set(number, content.subarray((number - 1) * pageBytes, number * pageBytes));
    }
    const entry = chain.full({ number: 0, nonce: 0, at, place }, { pages, count }, pageBytes);
    this.#deps.builder().add({ id, path }, entry);
    const opened = { openedPlace: place, lastOpenedPlace: place, stamp: null, frames: null };
    return { path, id, chain, state: "ready", scanned: null, reason: "unread", ...opened, copy: null, saved: null };
  }

  /** Takes up a file again, if it is as the store has it. */
  #resumed(path: string, stamp: FileStamp | null, opened: { id: string; page: number } | null): Tracked {
    const { archive, tables, bases } = this.#deps;
    const stored = opened === null ? archive.byPath(path) : (archive.byId(opened.id) ?? this.#renamed(path, opened.id));
    const known = stored === undefined || stored.removed !== null ? null : tables.read(stored.id, stored.last.entry);
    const file: Tracked = {
      path,
      id: opened?.id ?? stored?.id ?? "",
      chain: null,
      state: "unknown",
      scanned: null,
      reason: this.#deps.reason,
      openedPlace: null,
      lastOpenedPlace: 0,
      stamp: null,
      frames: null,
      copy: null,
      saved: null,
    };
    if (stored === undefined || known === null) return file;
    file.chain = new Chain(
      { id: opened?.id ?? stored.id, path, commitPage: opened?.page ?? 0 },
      { hashes: known.hashes, last: { ...stored.last } },
      bases,
    );
    if (isSame(known.stamp, stamp)) {
      file.state = "ready";
      file.stamp = stamp;
    }
    return file;
  }

  /** Returns the file with this path, if nothing was committed to it, so that it has no id yet, and gives it one. */
  #renamed(path: string, to: string): StoredFile | undefined {
    const stored = this.#deps.archive.byPath(path);
    if (stored === undefined || stored.last.number !== 0 || path.startsWith("d1/")) return undefined;
    this.#deps.builder().renamed.push({ id: stored.id, to });
    return stored;
  }

  #frames(record: Extract<FileRecord, { type: "frames" }>, content: Uint8Array<ArrayBuffer>): void {
    const { path, pageBytes } = record;
    const file = this.#files.get(path);
    if (file === undefined) {
      // This process has begun after the file was opened.
      this.#files.set(path, this.#resumed(path, null, null));
      return;
    }
    const { chain } = file;
    const isNext = follows(file.frames, record);
    file.frames = { salts: record.salts, next: record.first + content.byteLength / (FRAME_HEADER_BYTES + pageBytes) };
    if (file.state !== "ready") return;
    // Frames of an unknown WAL may be missing at its beginning.
    if (!isNext) {
      this.#break(path);
      return;
    }
    if (chain === null || chain.hashes.pageBytes !== pageBytes) {
      this.#break(path);
      return;
    }
    const open = this.#openCommits.get(path) ?? new Map<number, Uint8Array>();
    this.#openCommits.set(path, open);
    for (const commit of commitsOf(content, pageBytes, open)) {
      const entry = chain.commit(commit);
      if (entry === "known") continue;
      if (entry === "broken") {
        this.#break(path);
        return;
      }
      this.#deps.builder().add({ id: chain.id, path }, entry);
      this.#compareCopy(file, entry.head);
    }
    if (open.size === 0) this.#openCommits.delete(path);
  }

  /** Pages of transactions whose last frame has not come yet, by path. */
  readonly #openCommits = new Map<string, Map<number, Uint8Array>>();

  #compareCopy(file: Tracked, { number, after }: { number: number; after: string }): void {
    const { copy } = file;
    if (copy === null || copy.number !== number) return;
    if (copy.checksum === after) copy.isEqual = true;
    else this.#unequal(file, false);
  }

  #unequal(file: Tracked, isExpected: boolean): void {
    this.#dropCopy(file);
    if (!isExpected) this.#break(file.path);
  }

  #dropCopy(file: Tracked | undefined): void {
    if (file === undefined || file.copy === null) return;
    rmSync(file.copy.file.path, { force: true });
    file.copy = null;
  }

  #break(path: string): void {
    const file = this.#files.get(path);
    this.#openCommits.delete(path);
    if (file === undefined || file.state !== "ready") return;
    this.#distrust(file, "unread");
    this.#deps.onBroken(path);
  }

  #distrust(file: Tracked, reason: GapReason): void {
    file.state = "unknown";
    file.scanned = null;
    file.reason = reason;
    file.stamp = null;
    this.#dropCopy(file);
  }

  #isCopyDue({ chain }: Tracked, { at }: Cut): boolean {
    const stored = chain === null ? undefined : this.#deps.archive.byId(chain.id);
    const copied = stored?.fulls.at(-1);
    if (stored === undefined || copied === undefined || stored.last.number === copied.number) return false;
    const bytes = stored.last.pages * stored.pageBytes;
    return stored.entryBytes > bytes + ENTRIES_OVER_COPY_BYTES || at - copied.at > COPY_AGE_MAX_MS;
  }

  #scanOf(file: Tracked, { at, place }: Cut, { asCopy }: { asCopy: boolean }): Scanned {
    const { dataDirectory, ids } = this.#deps;
    if (file.id === "") file.id = ids.uuid();
    return scanFile({
      file: join(dataDirectory, `${file.path}.db`),
      id: file.id,
      path: file.path,
      known: file.chain?.hashes ?? null,
      temporary: join(dataDirectory, CONTINUOUS_FOLDER, `${file.id}.copy`),
      // One of d1 has numbers of its own.
      position: { number: (file.chain?.last?.number ?? 0) + 1, nonce: 0, at, place },
      asCopy,
    });
  }

  async #publish(file: Tracked, cut: Cut): Promise<void> {
    const { builder, bases, archive } = this.#deps;
    const { scanned } = file;
    if (scanned === null) return;
    const { row, found, pageBytes, commitPage, stamp } = scanned;
    const isAhead = row !== null && row.number !== 0 && row.number < (file.chain?.last?.number ?? 0);
    const id = row?.file || file.id;
    const before = file.chain !== null && file.chain.id === id ? file.chain : null;
    const last = before?.last ?? archive.byId(id)?.last ?? null;
    const numbered = row ?? { number: (last?.number ?? 0) + 1, nonce: 0, ...cut };
    const position = { number: numbered.number, nonce: numbered.nonce, at: numbered.at, place: numbered.place };
    // Nothing was committed yet; or the file is older than what is stored. Places of a file always grow.
    if (position.number === 0 || (last !== null && position.place <= last.place)) Object.assign(position, cut);
    const from = { hashes: before?.hashes ?? PageHashes.blank(pageBytes, 0), last: before?.last ?? null };
    const chain = new Chain({ id, path: file.path, commitPage }, from, bases);
    if (found.kind === "changed" && before !== null) builder().add(chain, chain.scan(position, found.changed));
    else if (found.kind === "full" || found.kind === "changed")
      builder().add(chain, chain.full(position, found.changed, pageBytes));
    else if (found.kind === "copy") await this.#publishBase(chain, { position, scanned, found });
    if (found.kind !== "equal") this.#noteGap(file, { id, last, position, isAhead });
    this.#replaced(file, id, cut);
    file.id = id;
    file.chain = chain;
    file.scanned = null;
    file.state = "ready";
    file.stamp = stamp;
  }

  async #publishBase(
    chain: Chain,
    {
      position,
      scanned,
      found,
    }: { position: Position; scanned: Scanned; found: Extract<Scanned["found"], { kind: "copy" }> },
  ): Promise<void> {
    const { store, builder, nextCopyKey } = this.#deps;
    const { pageBytes, pages } = scanned;
    const key = nextCopyKey(chain.id);
    const { path, sha256, bytes } = found.copy;
    await store.putFile(key, path);
    rmSync(path, { force: true });
    const { checksum } = found.hashes;
    const of = { id: chain.id, path: chain.path, pageBytes, pages, checksum, isBase: true };
    builder().copies.push({ ...of, copy: { ...position, key, sha256, isSegment: false, bytes } });
    chain.hashes = found.hashes;
    chain.last = { ...position, pages, checksum, entry: sha256 };
  }

  /** Notes which moments are missing. Files of d1 have no single commits in the first place. */
  #noteGap(file: Tracked, found: { id: string; last: Chain["last"]; position: Position; isAhead: boolean }): void {
    const { id, last, position, isAhead } = found;
    if (last === null || last.entry === "" || file.path.startsWith("d1/")) return;
    const { at: to, place: toPlace } = position;
    const { at: from, place: fromPlace } = last;
    const reason = isAhead ? "store_ahead" : file.reason;
    this.#deps.builder().gaps.push({ id, file: file.path, from, to, fromPlace, toPlace, reason });
  }

  /** Ends the file that had this path before. */
  #replaced(file: Tracked, id: string, { at, place }: Cut): void {
    const former = this.#deps.archive.byPath(file.path);
    if (former === undefined || former.id === id) return;
    this.#deps.builder().removed.push({ id: former.id, path: file.path, at, place });
    this.#deps.tables.forget(former.id);
  }
}
