import { AppError } from "../../../kernel/errors.ts";

/** The shared page, as far as a reader looks at it. */
export interface CommitPage {
  /** Counts the commits of all files. The writer raises it after each commit is visible, and before anything else of it happens. */
  committed(): number;
  /** Whether a reader may answer: the writer lives, does not stop, and no file has failed. */
  mayAnswer(): boolean;
}

/** A connection whose reads share a snapshot. */
export interface SnapshotSource {
  /** Begins a snapshot: everything that was committed before this call is in it, and nothing that is committed after it. */
  begin(): void;
  end(): void;
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
  readonly #open = new Set<SnapshotSource>();
  #id: CutId = 1;
  #committed = 0;
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
    if (!this.#isWhole || (this.#open.size > 0 && this.#page.committed() !== this.#committed)) this.#end();
    return this.#id;
  }

  /** Begins the file's snapshot, unless it is in the cut already. Call it before each read. Errors: `AnsweredElsewhere`. */
  read(source: SnapshotSource): void {
    if (!this.#isWhole) throw new AnsweredElsewhere();
    if (this.#open.has(source)) return;
    const isFirst = this.#open.size === 0;
    if (isFirst) this.#committed = this.#page.committed();
    source.begin();
    this.#open.add(source);
    if (isFirst) {
      const id = this.#id;
      this.#atEndOfTurn(() => {
        if (this.#id === id) this.#end();
      });
      return;
    }
    if (this.#page.committed() === this.#committed) return;
    this.#isWhole = false;
    throw new AnsweredElsewhere();
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

  #end(): void {
    for (const source of this.#open) source.end();
    this.#open.clear();
    this.#isWhole = true;
    this.#isSpoiled = false;
    this.#id += 1;
  }
}
