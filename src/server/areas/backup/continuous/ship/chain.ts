import type { CommitFrames } from "../../../../db/capture/commit-frames.ts";
import { decodeCommitRow } from "../../../../db/capture/commit-row.ts";
import { OPEN_MARK } from "../../../../db/writer/commit-gate.ts";
import { type EntryHead, type EntryKind, encodeHead, type Position } from "../format/entries.ts";
import type { StoredFile } from "../format/manifest.ts";
import { applyDifference, hashText, PageHashes, pageHash } from "../format/pages.ts";
import type { Bases } from "./bases.ts";

/** Bytes of contents for which memory is kept. */
const CONTENTS_KEPT_BYTES = 256 * 1024;

/** Contents of the last entry, of whichever file: memory that is taken anew for each costs more than what is done with it. */
let lastContents = new Uint8Array(0);

function contentsOf(bytes: number): Uint8Array<ArrayBuffer> {
  if (lastContents.byteLength < bytes || lastContents.byteLength > Math.max(bytes, CONTENTS_KEPT_BYTES))
    lastContents = new Uint8Array(Math.max(bytes, CONTENTS_KEPT_BYTES));
  return lastContents.subarray(0, bytes);
}

/** An entry that is ready to be stored. */
export interface ChainEntry {
  head: EntryHead;
  line: Uint8Array;
  /** Contents of the changed pages in their order, each whole or as a difference from its base. Valid until the next entry is made. */
  pages: Uint8Array;
  hash: string;
}

export type Last = StoredFile["last"];

/** Makes the entries of one file: each leads from the state before it to the next one. */
export class Chain {
  readonly id: string;
  readonly path: string;
  /** Page of the commit row. */
  #commitPage: number;
  readonly #bases: Pick<Bases, "get" | "set">;
  hashes: PageHashes;
  last: Last | null;

  constructor(
    file: { id: string; path: string; commitPage: number },
    from: { hashes: PageHashes; last: Last | null },
    bases: Pick<Bases, "get" | "set">,
  ) {
    this.id = file.id;
    this.path = file.path;
    this.#commitPage = file.commitPage;
    this.#bases = bases;
    this.hashes = from.hashes;
    this.last = from.last;
  }

  /** Takes note of the page with the commit row. */
  openedWith(commitPage: number): void {
    this.#commitPage = commitPage;
  }

  /**
   * Returns the entry of a transaction; "known": the chain has it already; "broken": it does not follow the last state, so that
   * something is missing. `opening`: whether it may be the first commit of a later opening, before which nothing can be missing.
   */
  commit({ pages, count }: CommitFrames, opening: "any" | "same" = "any"): ChainEntry | "known" | "broken" {
    const page = pages.get(this.#commitPage);
    const row = page === undefined ? null : decodeCommitRow(page);
    if (row === null || row.number === 0 || this.last === null || row.file !== this.id) return "broken";
    // Until the next number the file may change without one.
    if (row.nonce === OPEN_MARK || (this.last.number > 0 && this.last.nonce === OPEN_MARK)) return "broken";
    if (row.number <= this.last.number) return "known";
    // The first commit of an opening has another nonce, and a number that may be much higher.
    const isNext = row.number === this.last.number + 1 || row.nonce !== this.last.nonce;
    if (this.last.number !== 0 && !isNext) return "broken";
    if (opening === "same" && row.nonce !== this.last.nonce) return "broken";
    const { number, nonce, at, place } = row;
    return this.#entry("commit", { number, nonce, at, place }, { pages, count });
  }

  /** Returns the entry of a comparison that has found these pages to differ. */
  scan(position: Position, changed: CommitFrames): ChainEntry {
    return this.#entry("scan", position, changed);
  }

  /** Returns an entry with every page, which is the first of a chain. */
  full(position: Position, changed: CommitFrames, pageBytes: number): ChainEntry {
    this.hashes = PageHashes.blank(pageBytes, 0);
    this.last = null;
    return this.#entry("full", position, changed);
  }

  #entry(kind: EntryKind, position: Position, { pages, count }: CommitFrames): ChainEntry {
    const { hashes } = this;
    const { pageBytes } = hashes;
    const before = kind === "full" ? null : hashes.checksum;
    const inside = [...pages].filter(([page]) => page <= count).sort(([one], [other]) => one - other);
    const contents = contentsOf(inside.length * pageBytes);
    // Before the size changes, as a page that goes and comes back has no base; and before a base is set, which may end any other.
    const bases = inside.map(([page, content], index) => {
      const target = contents.subarray(index * pageBytes, (index + 1) * pageBytes);
      target.set(content);
      if (kind === "full" || page > hashes.count) return null;
      const hash = hashText(hashes.get(page));
      const base = this.#bases.get(this.id, page, hash);
      if (base === null) return null;
      applyDifference(target, base);
      return hash;
    });
    hashes.resize(count);
    const changed = inside.map(([page, content], index) => {
      const hash = pageHash(page, content);
      const result = hashText(hash);
      hashes.set(page, hash);
      this.#bases.set(this.id, page, { page: content, hash: result });
      return [page, bases[index] ?? null, result] as const;
    });
    const head: EntryHead = {
      kind,
      ...position,
      pageBytes,
      pages: count,
      before,
      after: hashes.checksum,
      previous: kind === "full" ? null : (this.last?.entry ?? null),
      changed,
    };
    const { line, hash } = encodeHead(head);
    this.last = { ...position, pages: count, checksum: head.after, entry: hash };
    return { head, line, pages: contents, hash };
  }
}
