import { commitsOf } from "../../db/capture/commit-frames.ts";
import { decodeCommitRow } from "../../db/capture/commit-row.ts";
import type { WalFrames } from "../../db/capture/types.ts";
import { OPEN_MARK } from "../../db/writer/commit-gate.ts";
import type { LogRow } from "../protocol/statements.ts";
import { encodeContent, type FileState } from "./content.ts";
import { PART_MIN_BYTES } from "./limits.ts";

/** Frames that do not follow the last commit that is known: the log lacks something of the file, and a copy of it has to be made. */
export class BrokenCommits extends Error {}

/** Makes rows of the log of one file's commits, each of which follows the one before. */
export class CommitRows {
  readonly #file: string;
  readonly #commitPage: number;
  #last: FileState;
  #pageBytes = 0;
  /** Pages of the transaction whose last frame has not come yet. */
  #open = new Map<number, Uint8Array>();
  /** Parts of it that have been sent, and the page of the commit row if that was in one of them. */
  #parts = 0;
  #sentCommitPage: Uint8Array | null = null;

  /** `commitPage`: the page of the commit row. `last`: the state that the log has led to. */
  constructor(file: { id: string; commitPage: number; last: FileState }) {
    this.#file = file.id;
    this.#commitPage = file.commitPage;
    this.#last = file.last;
  }

  /** The state that the rows have led to. */
  get last(): FileState {
    return this.#last;
  }

  /** Returns the rows of the commits that end in these frames, and of those parts that cannot wait. Errors: BrokenCommits. */
  take({ pageBytes, content }: Pick<WalFrames, "pageBytes" | "content">): LogRow[] {
    const rows: LogRow[] = [];
    this.#pageBytes = pageBytes;
    for (const { pages, count } of commitsOf(content, pageBytes, this.#open)) {
      const row = this.#commit(pages, count);
      if (row !== null) rows.push(row);
    }
    if (this.#open.size === 0) return rows;
    if (this.#open.size * pageBytes >= PART_MIN_BYTES) {
      rows.push(this.#part(this.#open));
      this.#open.clear();
    } else {
      // The memory of the frames is used again.
      for (const [number, image] of this.#open) this.#open.set(number, copyOf(image));
    }
    return rows;
  }

  /**
   * Returns the row of a commit; null: the log has it already. One without a number of its own, that of a VACUUM between two that have
   * one, is a part of the next.
   */
  #commit(pages: ReadonlyMap<number, Uint8Array>, count: number): LogRow | null {
    const page = pages.get(this.#commitPage) ?? this.#sentCommitPage;
    const row = page === null ? null : decodeCommitRow(page);
    const { number, nonce } = this.#last;
    if (number > 0 && row?.number === number && row.nonce === OPEN_MARK) return this.#part(pages);
    const parts = this.#parts;
    this.#parts = 0;
    this.#sentCommitPage = null;
    if (row === null || row.number === 0 || row.file !== this.#file)
      throw new BrokenCommits(`a commit of the file ${this.#file} does not say which one it is`);
    if (row.number <= number) return null;
    // The first commit of an opening has another nonce, and a number that may be much higher.
    if (number !== 0 && row.number !== number + 1 && row.nonce === nonce)
      throw new BrokenCommits(`commit ${row.number} of the file ${this.#file} does not follow ${number}`);
    const previous = this.#last;
    this.#last = { number: row.number, nonce: row.nonce };
    const changed = this.#changed(new Map([...pages].filter(([inside]) => inside <= count)));
    const { at, place } = row;
    const commit = { ...this.#last, at, place, previous, pages: count, parts, ...changed };
    return this.#row(row.number, encodeContent({ kind: "commit", ...commit }));
  }

  #part(pages: ReadonlyMap<number, Uint8Array>): LogRow {
    const index = this.#parts++;
    const page = pages.get(this.#commitPage);
    if (page !== undefined) this.#sentCommitPage = copyOf(page);
    const part = { index, previous: this.#last, ...this.#changed(pages) };
    return this.#row(this.#last.number, encodeContent({ kind: "part", ...part }));
  }

  #row(number: number, content: Uint8Array): LogRow {
    return { file: this.#file, number, content };
  }

  #changed(pages: ReadonlyMap<number, Uint8Array>) {
    const images = new Uint8Array(pages.size * this.#pageBytes);
    let offset = 0;
    for (const image of pages.values()) {
      images.set(image, offset);
      offset += this.#pageBytes;
    }
    return { pageBytes: this.#pageBytes, numbers: [...pages.keys()], images };
  }
}

/** `slice` of a Buffer is a view. */
const copyOf = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);
