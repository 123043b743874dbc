import { AppError } from "../../../kernel/errors.ts";

/** The shared page, as far as a reader looks at it. */
export interface CommitPage {
  /** Counts the commits of all files. The writer raises it after each commit is visible, and before anything else of it happens. */
  committed(): number;
  /**
   * Counts the commits of one file, as `committed` does, and raised before that; null: it is not counted apart. The count may be
   * lower than what is visible, and is not lower than what has been counted in `committed`.
   */
  committedIn(path: string): number | null;
  /** Whether a reader may answer: the writer lives, does not stop, and no file has failed. */
  mayAnswer(): boolean;
}

/** A connection whose reads share a snapshot. */
export interface SnapshotSource {
  readonly path: string;
  /** Begins a snapshot: everything that was committed before this call is in it, and nothing that is committed after it. */
  begin(): void;
  end(): void;
  /** Returns the number of the last commit in the snapshot. */
  version(): number;
}

/** The state of a file from which something is kept. */
export interface KeptState {
  /** The count of the file's commits from before the snapshot, which may show one more. */
  count: number;
  /** The number of the last commit in the snapshot. */
  version: number;
}

/** The reason why a reader does not answer a request by itself: the main process is to answer it. */
export class AnsweredElsewhere extends AppError {
  constructor() {
    super(503, "Another process answers this request");
  }
}

/** Marks a request that a reader has begun to answer. */
export type CutId = number;

/**
 * The state of all files at one moment, for the reads of one turn of the event loop in a process that does not write. Each file has a
 * snapshot of its own, begun at its first read, so a commit in between would give a request the rights of one moment and the records
 * of a later one. The count of commits finds that: it is read before the first snapshot, and is unchanged after each further one.
 *
 * A request notes the cut when it begins, and its answer is sent only if that cut still stands: see `stands`.
 */
export class ReadCut {
  readonly #page: CommitPage;
  readonly #atEndOfTurn: (work: () => void) => void;
  /** The files that have a snapshot in the cut, and the counts of their commits from before it. */
  readonly #open = new Map<SnapshotSource, number | null>();
  /** The files of which something kept is used in the cut, instead of a snapshot, and its version. */
  readonly #kept = new Map<SnapshotSource, number>();
  #id: CutId = 1;
  #committed = 0;
  /** Whether the count of all commits has been read, before anything else of the cut. */
  #isBegun = false;
  #isWhole = true;
  #isSpoiled = false;

  /** `atEndOfTurn` runs work when the current turn of the event loop ends. */
  constructor(page: CommitPage, atEndOfTurn: (work: () => void) => void = (work) => void setImmediate(work)) {
    this.#page = page;
    this.#atEndOfTurn = atEndOfTurn;
  }

  /** Begins a request. null: this process may not answer. Everything that was answered before this call is in the cut. */
  enter(): CutId | null {
    if (!this.#page.mayAnswer()) return null;
    if (!this.#isWhole || (this.#isBegun && this.#page.committed() !== this.#committed)) this.#end();
    return this.#id;
  }

  /** Begins the file's snapshot, unless it is in the cut already. Call it before each read. Errors: `AnsweredElsewhere`. */
  read(source: SnapshotSource): void {
    if (!this.#isWhole) throw new AnsweredElsewhere();
    if (this.#open.has(source)) return;
    const isFirst = !this.#isBegun;
    if (isFirst) this.#beginCut();
    const count = this.#page.committedIn(source.path);
    source.begin();
    this.#open.set(source, count);
    if (isFirst) return;
    // A snapshot may show a commit that is not counted yet, so something kept stands beside one of the same file only in its state.
    const kept = this.#kept.get(source) ?? source.version();
    if (this.#page.committed() === this.#committed && kept === source.version()) return;
    this.#isWhole = false;
    throw new AnsweredElsewhere();
  }

  /** Returns the state from which something may be kept that is read of the file in this cut; null: it may not. Call it after `read`. */
  stateOf(source: SnapshotSource): KeptState | null {
    const count = this.#open.get(source) ?? null;
    return count === null ? null : { count, version: source.version() };
  }

  /**
   * Whether what was kept from this state of the file may be used in this cut, where a read would show the same. If not, read it.
   * Errors: `AnsweredElsewhere`.
   */
  keeps(source: SnapshotSource, { count, version }: KeptState): boolean {
    if (!this.#isWhole) throw new AnsweredElsewhere();
    if (this.#open.has(source)) return false;
    if (!this.#isBegun) this.#beginCut();
    if (this.#page.committedIn(source.path) !== count) return false;
    const other = this.#kept.get(source);
    if (other === undefined) this.#kept.set(source, version);
    // Two states may have one count, while a commit is not counted yet.
    return other === undefined || other === version;
  }

  /**
   * Makes no answer from this cut stand, and ends each further read: this process cannot answer what is under way. Errors:
   * `AnsweredElsewhere`, always.
   */
  spoil(): never {
    this.#isWhole = false;
    this.#isSpoiled = true;
    throw new AnsweredElsewhere();
  }

  /** Whether another try of a request may succeed whose cut does not stand. */
  mayRepeat(id: CutId): boolean {
    return id !== this.#id || !this.#isSpoiled;
  }

  /** Whether an answer that was begun with `id` may be sent: all of its reads were of one moment, and this process may answer. */
  stands(id: CutId): boolean {
    return id === this.#id && this.#isWhole && this.#page.mayAnswer();
  }

  #beginCut(): void {
    this.#isBegun = true;
    this.#committed = this.#page.committed();
    const id = this.#id;
    this.#atEndOfTurn(() => {
      if (this.#id === id) this.#end();
    });
  }

  #end(): void {
    for (const source of this.#open.keys()) source.end();
    this.#open.clear();
    this.#kept.clear();
    this.#isBegun = false;
    this.#isWhole = true;
    this.#isSpoiled = false;
    this.#id += 1;
  }
}
