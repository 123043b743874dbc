import { closeSync, openSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import type { CommitPage } from "./read-cut.ts";

const PAGE_BYTES = 4096;
const WORD_BYTES = 4;
/** The words of the page. Each is written by the main process alone, except the requests. */
const WORDS = { committed: 0, isClosed: 1, requests: 2, committedApart: 3 } as const;
/** The figures of workers, in the order of their words. A worker writes its own. */
const FIGURES = ["signs", "answered", "forwarded", "memoryKiB", "loopUs", "busyMs"] as const;
const FIGURES_AT = 16;
const FIGURES_WORDS = 8;
/** Figures of a worker. `signs` grows while it lives; `loopUs` is the last measured delay of its event loop, `busyMs` the time for which that has run. */
export type WorkerFigures = Record<(typeof FIGURES)[number], number>;

/** Notices of the writer of files for those that read them. */
export interface ReaderNotices {
  /** Called when a commit of the file at `path` has become visible. */
  onVisible(path: string): void;
  /** Called when a file has failed for good: nothing of it may be shown. */
  onFailed(): void;
}

/** Makes the file of a page. It must not exist. */
export function createPageFile(path: string): void {
  const descriptor = openSync(path, "wx", 0o600);
  writeSync(descriptor, new Uint8Array(PAGE_BYTES));
  closeSync(descriptor);
}

/** The memory that all processes of a server share. Numbers wrap around after 2^32. */
export class SharedPage implements CommitPage, ReaderNotices {
  readonly #words: Int32Array;
  readonly #apart: string;

  /** Maps the file that `createPageFile` has made. `apart`: the path of the file whose commits are counted apart, too. */
  constructor(path: string, { apart }: { apart: string }) {
    this.#apart = resolve(apart);
    const bytes = Bun.mmap(path, { shared: true });
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset, PAGE_BYTES / WORD_BYTES);
  }

  committed(): number {
    return Atomics.load(this.#words, WORDS.committed);
  }

  mayAnswer(): boolean {
    return Atomics.load(this.#words, WORDS.isClosed) === 0;
  }

  committedIn(path: string): number | null {
    return path === this.#apart ? Atomics.load(this.#words, WORDS.committedApart) : null;
  }

  readonly onVisible = (path: string): void => {
    // First: who finds this one unchanged after a look at the count of all finds the commit by that.
    if (path === this.#apart) Atomics.add(this.#words, WORDS.committedApart, 1);
    Atomics.add(this.#words, WORDS.committed, 1);
  };

  readonly onFailed = (): void => this.close();

  /** Lets no worker answer by itself from now on. */
  close(): void {
    Atomics.store(this.#words, WORDS.isClosed, 1);
  }

  /** The requests of all processes in the current window of the limit of all requests. */
  readonly requests = {
    count: (): number => Atomics.load(this.#words, WORDS.requests),
    /** Counts one request. Returns how many there were before it. */
    add: (): number => Atomics.add(this.#words, WORDS.requests, 1),
    /** Begins a window, with its first request; `total`: with so many. */
    restart: (total = 1): void => void Atomics.store(this.#words, WORDS.requests, total),
  };

  write(place: number, figures: WorkerFigures): void {
    for (const [index, name] of FIGURES.entries()) {
      Atomics.store(this.#words, FIGURES_AT + place * FIGURES_WORDS + index, figures[name] | 0);
    }
  }

  read(place: number): WorkerFigures {
    const at = (index: number) => Atomics.load(this.#words, FIGURES_AT + place * FIGURES_WORDS + index) >>> 0;
    return { signs: at(0), answered: at(1), forwarded: at(2), memoryKiB: at(3), loopUs: at(4), busyMs: at(5) };
  }
}
