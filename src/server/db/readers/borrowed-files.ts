import { BoundedMap } from "../../../kernel/bounded-map.ts";
import { ASKED_AGAIN_MS, ASKED_KEPT_MAX, LENT_MAX } from "../limits.ts";
import type { LentId } from "./lent-files.ts";

interface Borrowed<File> {
  id: LentId;
  file: File;
}

/** Files that the process which writes them has lent to this one. The least recently used are given back beyond LENT_MAX. */
export class BorrowedFiles<File> {
  readonly #open: (path: string) => File | null;
  readonly #close: (file: File) => void;
  readonly #returned: (id: LentId) => void;
  readonly #atEndOfTurn: (work: () => void) => void;
  /** Open files by path, in the order of their last use. */
  readonly #held = new Map<string, Borrowed<File>>();
  /** Times at which files were asked for. */
  readonly #asked = new BoundedMap<string, { at: number }>(ASKED_KEPT_MAX);

  /**
   * `open`: null where the file cannot be read. `atEndOfTurn`: runs work when nothing of this turn of the event loop reads any more.
   * `returned` tells the other process that a file is closed.
   */
  constructor(deps: {
    open(path: string): File | null;
    close(file: File): void;
    returned(id: LentId): void;
    atEndOfTurn(work: () => void): void;
  }) {
    this.#open = deps.open;
    this.#close = deps.close;
    this.#returned = deps.returned;
    this.#atEndOfTurn = deps.atEndOfTurn;
  }

  /** Returns the file; null: it is not lent. */
  get(path: string): File | null {
    const known = this.#held.get(path);
    if (known === undefined) return null;
    this.#held.delete(path);
    this.#held.set(path, known);
    return known.file;
  }

  /** Whether the file is to be asked for: it was not, or a while ago. `now`: milliseconds. */
  mayAsk(path: string, now: number): boolean {
    const asked = this.#asked.get(path);
    if (asked !== undefined && now - asked.at < ASKED_AGAIN_MS) return false;
    this.#asked.set(path, { at: now });
    return true;
  }

  lent(id: LentId, path: string): void {
    const file = this.#held.has(path) ? null : this.#open(path);
    if (file === null) {
      this.#returned(id);
      return;
    }
    for (const [oldest, { id: other }] of this.#held) {
      if (this.#held.size < LENT_MAX) break;
      this.#giveBack(oldest, other);
    }
    this.#held.set(path, { id, file });
  }

  recall(id: LentId): void {
    for (const [path, held] of this.#held) if (held.id === id) this.#giveBack(path, id);
  }

  /** Gives all files back. */
  giveBack(): void {
    for (const [path, { id }] of this.#held) this.#giveBack(path, id);
  }

  #giveBack(path: string, id: LentId): void {
    const held = this.#held.get(path);
    if (held === undefined) return;
    // From now on nothing begins to read it; what this turn has read of it may still be answered.
    this.#held.delete(path);
    this.#atEndOfTurn(() => {
      this.#close(held.file);
      this.#returned(id);
    });
  }
}
