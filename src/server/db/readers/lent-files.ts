import type { Clock } from "../../../kernel/clock.ts";
import { LENT_MAX, RECALL_MAX_MS } from "../limits.ts";

/** Lends open files to readers in other processes. Whoever closes one takes it back before. */
export interface Lending {
  /** Whether a reader may have the file open. */
  isLent(path: string): boolean;
  /** Takes a file back; resolves when no reader has it open. undefined: none has. Nobody lends it meanwhile. */
  recall(path: string): Promise<void> | undefined;
}

/** Number of one lending: a file may be lent, given back and lent again while messages about it are under way. */
export type LentId = number;

/** Messages about lent files to a reader. */
export type ToBorrower = { kind: "lend"; id: LentId; path: string } | { kind: "recall"; id: LentId };

interface Recall {
  promise: Promise<void>;
  resolve(): void;
}

/** The files that the process which writes them has lent to readers, each of which has a place. */
export class LentFiles implements Lending {
  readonly #send: (place: number, message: ToBorrower) => void;
  readonly #end: (place: number) => void;
  readonly #clock: Pick<Clock, "after">;
  /** Places of the readers of each file, by the number of the lending. */
  readonly #lent = new Map<string, Map<LentId, number>>();
  readonly #paths = new Map<LentId, string>();
  readonly #recalls = new Map<string, Recall>();
  #lastId = 0;

  /** `end` ends a reader that does not give a file back: call `gone` then. */
  constructor(deps: {
    send(place: number, message: ToBorrower): void;
    end(place: number): void;
    clock: Pick<Clock, "after">;
  }) {
    this.#send = deps.send;
    this.#end = deps.end;
    this.#clock = deps.clock;
  }

  /** Lends a file that is open, and is not about to be closed. Does nothing where the reader has it, or as many as it may. */
  lend(place: number, path: string): void {
    if (this.#recalls.has(path)) return;
    const readers = this.#lent.get(path) ?? new Map<LentId, number>();
    // A reader with as many as it may have gives the oldest back when it gets another one.
    if ([...readers.values()].includes(place) || this.#countOf(place) >= 2 * LENT_MAX) return;
    this.#lastId += 1;
    readers.set(this.#lastId, place);
    this.#lent.set(path, readers);
    this.#paths.set(this.#lastId, path);
    this.#send(place, { kind: "lend", id: this.#lastId, path });
  }

  isLent(path: string): boolean {
    return this.#lent.has(path);
  }

  recall(path: string): Promise<void> | undefined {
    const readers = this.#lent.get(path);
    if (readers === undefined) return undefined;
    const known = this.#recalls.get(path);
    if (known !== undefined) return known.promise;
    const recall = Promise.withResolvers<void>();
    this.#recalls.set(path, recall);
    for (const [id, place] of readers) this.#send(place, { kind: "recall", id });
    const cancel = this.#clock.after(RECALL_MAX_MS, () => {
      for (const place of new Set(this.#lent.get(path)?.values() ?? [])) this.#end(place);
    });
    return recall.promise.finally(cancel);
  }

  /** Notes that a reader has closed a file. */
  returned(id: LentId): void {
    const path = this.#paths.get(id);
    if (path === undefined) return;
    this.#paths.delete(id);
    const readers = this.#lent.get(path);
    readers?.delete(id);
    if (readers !== undefined && readers.size > 0) return;
    this.#lent.delete(path);
    this.#recalls.get(path)?.resolve();
    this.#recalls.delete(path);
  }

  /** Notes that a reader has ended, with everything that it had open. */
  gone(place: number): void {
    const ids = [...this.#lent.values()].flatMap((readers) => [...readers].filter(([, of]) => of === place));
    for (const [id] of ids) this.returned(id);
  }

  #countOf(place: number): number {
    let count = 0;
    for (const readers of this.#lent.values()) for (const of of readers.values()) if (of === place) count += 1;
    return count;
  }
}
