import { unreachable } from "../../../../../kernel/errors.ts";
import type { Ids } from "../../../../../kernel/ids.ts";
import { commitsOf, FRAME_HEADER_BYTES } from "../../../../db/capture/commit-frames.ts";
import type { FileRecord, FileStamp } from "../capture/records.ts";
import type { Position } from "../format/entries.ts";
import type { GapReason, StoredFile } from "../format/manifest.ts";
import { PageHashes } from "../format/pages.ts";
import { TABLE_SAVED_AT_ONCE_BYTES, TABLE_SAVED_EVERY_MS } from "../limits.ts";
import type { Bases } from "./bases.ts";
import { Chain } from "./chain.ts";
import { Copies } from "./copies.ts";
import type { ShipParts } from "./disk.ts";
import { Endings, type EndingsDeps } from "./endings.ts";
import { beginLeft, followLeft, isFollowed, resume } from "./left.ts";
import type { Scanned, ScanOptions } from "./scan.ts";
import { type Cut, follows, isSame, pageBytesOf, type Tracked } from "./tracked-file.ts";

interface TrackedDeps extends Pick<ShipParts, "disk" | "store">, EndingsDeps {
  bases: Pick<Bases, "get" | "set">;
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
  readonly #endings: Endings;
  readonly #copies: Copies;
  readonly #files = new Map<string, Tracked>();

  constructor(deps: TrackedDeps) {
    this.#deps = deps;
    this.#endings = new Endings(deps);
    this.#copies = new Copies({
      ...deps,
      byId: (id) => deps.archive.byId(id),
      scan: (file, cut, purpose) => this.#scanOf(file, cut, purpose),
      onUnequal: (path) => this.#break(path),
    });
  }

  /** Whether every file is as the store, or entries that wait, have it. */
  get areReady(): boolean {
    for (const { state } of this.#files.values()) if (state !== "ready") return false;
    return true;
  }

  take(record: FileRecord, content: Uint8Array<ArrayBuffer>): void {
    switch (record.type) {
      case "left":
        this.#left(record, content);
        break;
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

  /** Looks at a file whose WAL a crash has left, and that the server has not opened. Errors: those of the disk. */
  visitLeft(path: string): void {
    if (this.#files.has(path)) return;
    try {
      for (const { left, content } of this.#deps.disk.left(path)) this.#left({ type: "left", path, ...left }, content);
    } finally {
      this.visit(path, null);
    }
    const file = this.#files.get(path);
    if (file !== undefined && isFollowed(file)) resume(file);
  }

  remove(path: string, cut: Cut): void {
    const { archive, builder } = this.#deps;
    const { place } = cut;
    const file = this.#files.get(path);
    const stored = archive.byPath(path);
    // A record that comes again is older than the file that has the name now.
    if (file !== undefined && file.lastOpenedPlace > place) return;
    // A comparison has found the later file already, and ended the one that this is about.
    if ((file?.chain?.last?.place ?? 0) > place) return;
    if (stored !== undefined && stored.last.place > place) return;
    const isAgreed = file === undefined ? this.#endings.wasClosed(stored) : file.state === "ready";
    this.#files.delete(path);
    this.#copies.drop(file);
    const id = file?.chain?.id ?? stored?.id;
    for (const other of builder().idsOf(path, place)) if (other !== id) this.#endings.end(other, path, cut);
    if (id === undefined || !this.#endings.end(id, path, cut)) return;
    // It was to be compared, which can no longer be done.
    const last = file?.chain?.last ?? stored?.last ?? null;
    if (isAgreed || last === null) return;
    const covered = this.#deps.coveredTo();
    const from = covered !== null && covered.place > last.place ? covered : last;
    this.#endings.gap({ id, path, reason: file?.reason ?? "unread" }, from, cut);
  }

  /** Ends a file of the store that is missing, and of whose removal nothing was said; the path may be another file's by now. */
  end({ id, path }: Pick<StoredFile, "id" | "path">, cut: Cut): void {
    const file = this.#files.get(path);
    if (file?.chain?.id === id) {
      if (file.lastOpenedPlace > cut.place) return;
      this.#files.delete(path);
      this.#copies.drop(file);
    }
    this.#endings.endUnseen(id, path, cut);
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
        file.scanned = { ...this.#scanOf(file, cut, "compare"), cut };
        file.state = "scanned";
        const { found } = file.scanned;
        if (found.kind === "full" || found.kind === "changed")
          bytes += found.changed.pages.size * file.scanned.pageBytes;
      } catch (cause) {
        // A file that was removed meanwhile is said to be removed by a later record, or found missing.
        if (this.#deps.disk.exists(file.path)) onFailure(file.path, cause);
        else if (file.isGone) this.#files.delete(file.path);
        else file.isGone = true;
      }
      if (isOver(bytes)) return;
    }
  }

  /** Stores what comparisons have found. */
  async publish(): Promise<void> {
    for (const file of this.#files.values()) if (file.state === "scanned") await this.#publish(file);
  }

  /** Reads a file that is due for a full copy, or has to be confirmed. */
  copyDue(cut: Cut): void {
    this.#copies.read(this.#files.values(), cut);
  }

  /** Stores the copies that have proved equal. */
  async publishCopies(): Promise<void> {
    await this.#copies.publish(this.#files.values());
  }

  /** Keeps what is known of files in the data directory; their entries are in the store. Large tables are kept less often. */
  save(now: number, { isLast }: { isLast: boolean }): void {
    const { archive, tables } = this.#deps;
    for (const [path, file] of this.#files) {
      const { chain, state, openedPlace, saved } = file;
      if (chain?.last == null || state !== "ready") continue;
      const { entry } = chain.last;
      if (archive.byId(chain.id)?.last.entry !== entry) continue;
      const stamp = openedPlace === null && file.doubtedSince === null ? file.stamp : null;
      const isSmall = chain.hashes.words.byteLength <= TABLE_SAVED_AT_ONCE_BYTES;
      const isDue = isLast || isSmall || openedPlace === null || now - (saved?.at ?? 0) >= TABLE_SAVED_EVERY_MS;
      const isSaved = saved?.entry === entry && (saved.stamp === stamp || isSame(saved.stamp, stamp));
      if (!isSaved && isDue) {
        tables.save(chain.id, { hashes: chain.hashes, entry, stamp });
        file.saved = { entry, stamp, at: now };
      }
      // A closed file is taken up again from what was kept.
      if (openedPlace === null) this.#forgetClosed(path);
    }
  }

  #forgetClosed(path: string): void {
    const file = this.#files.get(path);
    if (file?.copy === null && file.doubtedSince === null) this.#files.delete(path);
  }

  #opened(record: Extract<FileRecord, { type: "opened" }>, content: Uint8Array<ArrayBuffer>): void {
    const { path, file: id, page, place } = record;
    const known = this.#files.get(path);
    if (known !== undefined && known.lastOpenedPlace >= place) return;
    if (record.isNew && this.#deps.archive.byId(id) === undefined) {
      this.#endings.replaced(path, id, record);
      this.#files.set(path, this.#made(record, content));
      return;
    }
    const isOwn = known?.chain != null && known.chain.id === id;
    // What the chain in memory knows may not be in the store yet, so that nothing is read from there.
    const next = isOwn ? known : this.#resumed(path, record.stamp, { id, page });
    if (isOwn) {
      const isReady = known.state === "ready" && known.openedPlace === null && isSame(known.stamp, record.stamp);
      known.chain?.openedWith(page);
      if (!record.isRewritten && isFollowed(known)) resume(known);
      else if (!isReady) this.#distrust(known, known.reason);
    }
    next.left = null;
    next.frames = null;
    next.openedPlace = place;
    next.lastOpenedPlace = place;
    this.#files.set(path, next);
  }

  /** Follows the commits that a crash has left in the WAL, as far as nothing is missing. */
  #left({ path, ...left }: Extract<FileRecord, { type: "left" }>, content: Uint8Array<ArrayBuffer>): void {
    const known = this.#files.get(path);
    const file = known ?? this.#resumed(path, null, { id: left.file, page: left.page });
    this.#files.set(path, file);
    const { chain } = file;
    if (chain === null || file.openedPlace !== null) return;
    // One that has to be compared for another reason is not as its chain says.
    if (left.first === 0 && (known === undefined || file.state === "ready")) beginLeft(file, left);
    const of = { id: chain.id, path };
    if (!followLeft(file, { left, content }, (entry) => this.#deps.builder().add(of, entry))) this.#break(path);
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
    return {
      path,
      id,
      chain,
      state: "ready",
      scanned: null,
      reason: "unread",
      ...opened,
      copy: null,
      saved: null,
      isGone: false,
      left: null,
      doubtedSince: null,
    };
  }

  /** Takes up a file again, if it is as the store has it. */
  #resumed(path: string, stamp: FileStamp | null, opened: { id: string; page: number } | null): Tracked {
    const { archive, tables, bases } = this.#deps;
    const stored =
      opened === null ? archive.byPath(path) : (archive.byId(opened.id) ?? this.#endings.renamed(path, opened.id));
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
      isGone: false,
      left: null,
      doubtedSince: null,
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
      this.#copies.compare(file, entry.head);
    }
    if (open.size === 0) this.#openCommits.delete(path);
  }

  /** Pages of transactions whose last frame has not come yet, by path. */
  readonly #openCommits = new Map<string, Map<number, Uint8Array>>();

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
    this.#copies.drop(file);
  }

  #scanOf(file: Tracked, { at, place }: Cut, purpose: ScanOptions["purpose"]): Scanned {
    const { disk, ids } = this.#deps;
    if (file.id === "") file.id = ids.uuid();
    const { chain } = file;
    const options = {
      id: file.id,
      // Of a file without a commit row.
      position: { number: (chain?.last?.number ?? 0) + 1, nonce: 0, at, place },
      purpose,
    };
    const scanned = disk.scan(file.path, { ...options, known: chain?.hashes ?? null });
    const isOther = chain !== null && (scanned.row?.file || file.id) !== chain.id;
    // The chain of another file begins with every page.
    return isOther && purpose === "compare" ? disk.scan(file.path, { ...options, known: null }) : scanned;
  }

  async #publish(file: Tracked): Promise<void> {
    const { builder, bases, archive } = this.#deps;
    const { scanned } = file;
    if (scanned === null) return;
    // That of the comparison: commits that were made since have higher places, and follow.
    const { row, found, pageBytes, commitPage, stamp, cut } = scanned;
    const isAhead = row !== null && row.number !== 0 && row.number < (file.chain?.last?.number ?? 0);
    const id = row?.file || file.id;
    const before = file.chain !== null && file.chain.id === id ? file.chain : null;
    const last = before?.last ?? archive.byId(id)?.last ?? null;
    const numbered = row ?? { number: (last?.number ?? 0) + 1, nonce: 0, ...cut };
    const position = { number: numbered.number, nonce: numbered.nonce, at: numbered.at, place: numbered.place };
    // Nothing was committed yet; or the file is older than what is stored. Places of a file always grow.
    if (position.number === 0 || (last !== null && position.place <= last.place))
      Object.assign(position, { at: cut.at, place: cut.place });
    const from = { hashes: before?.hashes ?? PageHashes.blank(pageBytes, 0), last: before?.last ?? null };
    const chain = new Chain({ id, path: file.path, commitPage }, from, bases);
    if (found.kind === "changed" && before !== null) builder().add(chain, chain.scan(position, found.changed));
    else if (found.kind === "full" || found.kind === "changed")
      builder().add(chain, chain.full(position, found.changed, pageBytes));
    else if (found.kind === "copy") await this.#publishBase(chain, { position, scanned, found });
    if (found.kind !== "equal") this.#noteGap(file, { id, last, position, isAhead });
    // Nothing was said of the id that the file's first commit has given it.
    if (archive.byId(id) === undefined && archive.byPath(file.path)?.id !== id) this.#endings.renamed(file.path, id);
    this.#endings.replaced(file.path, id, cut);
    file.id = id;
    file.chain = chain;
    file.scanned = null;
    file.state = "ready";
    file.doubtedSince = null;
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
    const { disk, store, builder, nextCopyKey } = this.#deps;
    const { pageBytes, pages } = scanned;
    const key = nextCopyKey(chain.id);
    const { path, sha256, bytes } = found.copy;
    await store.putFile(key, path);
    disk.removeCopy(path);
    const { checksum } = found.hashes;
    const of = { id: chain.id, path: chain.path, pageBytes, pages, checksum, isBase: true };
    builder().copies.push({ ...of, copy: { ...position, key, sha256, isSegment: false, bytes } });
    chain.hashes = found.hashes;
    chain.last = { ...position, pages, checksum, entry: sha256 };
  }

  /**
   * Notes which moments are missing: those since the last state that is stored, or since everything was, where that was later.
   */
  #noteGap(file: Tracked, found: { id: string; last: Chain["last"]; position: Position; isAhead: boolean }): void {
    const { id, last, position, isAhead } = found;
    const covered = this.#deps.coveredTo();
    const since = file.doubtedSince ?? (last === null || last.entry === "" ? covered : last);
    const from = since !== null && covered !== null && covered.place > since.place ? covered : since;
    if (from === null || from.place >= position.place) return;
    this.#endings.gap({ id, path: file.path, reason: isAhead ? "store_ahead" : file.reason }, from, position);
  }
}
