import type { Span } from "./container.ts";
import { type ChangedPage, type EntryHead, encodeHead } from "./entries.ts";
import { applyDifference } from "./pages.ts";

/** Entry of the manifest for an object that stands for the segments from `first` to `last`. */
export interface MergedFacts {
  key: string;
  sha256: string;
  bytes: number;
  /** 0: a minute, 1: an hour, 2: a day. */
  level: number;
  /** Counters of the segments. */
  first: number;
  last: number;
  /** The first and the last place of their entries. */
  firstPlace: number;
  place: number;
  /** Times at which it was begun and completed. */
  from: number;
  to: number;
}

/** The changes of one file: a block with one entry. */
export interface MergedPart extends Span {
  id: string;
  path: string;
  size: number;
  /** The first and the last place of the entries for which it stands. */
  firstPlace: number;
  place: number;
}

export interface MergedDescription {
  format: string;
  version: number;
  incarnation: string;
  first: number;
  last: number;
  parts: MergedPart[];
}

const PAGES_TAKEN_BYTES = 256 * 1024;

const leastOf = ({ pages, merged }: EntryHead): number => merged?.least ?? pages;

interface MergedPage {
  base: string | null;
  result: string;
  content: Uint8Array;
}

/**
 * Composes consecutive entries of one file into one: the last version of each page, as a difference from the version before the first
 * entry where that is known. Differences of a page add up by exclusive or, whoever does not know the page itself.
 */
export class Composition {
  readonly #first: EntryHead;
  readonly #pages = new Map<number, MergedPage>();
  #last: EntryHead;
  #lastHash: string;
  /** The least number of pages in between: those behind it were zeros before they were written again. */
  #least: number;
  /** Memory of the pages that come next: many small pieces would scatter the memory. */
  #free = new Uint8Array(0);
  /** Bytes of the pages in memory. */
  bytes = 0;

  constructor(head: EntryHead, pages: Uint8Array, hash: string) {
    this.#first = head;
    this.#last = head;
    this.#lastHash = hash;
    this.#least = leastOf(head);
    this.add(head, pages, hash);
  }

  get firstPlace(): number {
    return this.#first.merged?.firstPlace ?? this.#first.place;
  }

  get place(): number {
    return this.#last.place;
  }

  /** Whether an entry is the next one. */
  isFollowedBy({ kind, previous }: EntryHead): boolean {
    return kind !== "full" && previous === this.#lastHash;
  }

  add(head: EntryHead, pages: Uint8Array, hash: string): void {
    const { pageBytes } = head;
    const least = leastOf(head);
    if (least < this.#last.pages) this.#cut(least);
    this.#least = Math.min(this.#least, least);
    for (const [index, [page, base, result]] of head.changed.entries()) {
      this.#change(page, pages.subarray(index * pageBytes, (index + 1) * pageBytes), { base, result });
    }
    this.#last = head;
    this.#lastHash = head.merged?.last ?? hash;
  }

  /** Returns the one entry, whose pages follow its line. */
  encode(): { line: Uint8Array; pages: Uint8Array[] } {
    const { number, nonce, at, place, pageBytes, pages: count, after } = this.#last;
    const sorted = [...this.#pages].sort(([one], [other]) => one - other);
    const head: EntryHead = {
      kind: "merged",
      number,
      nonce,
      at,
      place,
      pageBytes,
      pages: count,
      before: this.#first.before,
      after,
      previous: this.#first.previous,
      changed: sorted.map(([page, { base, result }]): ChangedPage => [page, base, result]),
      merged: { firstPlace: this.firstPlace, last: this.#lastHash, least: this.#least },
    };
    return { line: encodeHead(head).line, pages: sorted.map(([, { content }]) => content) };
  }

  #copy(content: Uint8Array): Uint8Array {
    const { byteLength } = content;
    // As much as there is already, so that a file of few pages takes little.
    if (this.#free.byteLength < byteLength)
      this.#free = new Uint8Array(Math.max(byteLength, Math.min(this.bytes, PAGES_TAKEN_BYTES)));
    const copy = this.#free.subarray(0, byteLength);
    this.#free = this.#free.subarray(byteLength);
    copy.set(content);
    return copy;
  }

  #cut(count: number): void {
    for (const [page, { content }] of this.#pages) {
      if (page <= count) continue;
      this.#pages.delete(page);
      this.bytes -= content.byteLength;
    }
  }

  #change(page: number, content: Uint8Array, { base, result }: { base: string | null; result: string }): void {
    const known = this.#pages.get(page);
    if (known === undefined) {
      this.#pages.set(page, { base, result, content: this.#copy(content) });
      this.bytes += content.byteLength;
      return;
    }
    if (base === null) {
      known.content.set(content);
      known.base = null;
    } else applyDifference(known.content, content);
    known.result = result;
  }
}
