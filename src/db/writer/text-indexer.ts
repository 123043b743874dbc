import type { Clock } from "../../kernel/clock.ts";
import { INDEX_PAUSE_MS, INDEX_RETRY_MS } from "../limits.ts";

export interface TextIndexerOptions {
  clock: Clock;
  /** Runs `work` when no other file's slice does: a writer that is held never waits for somebody else's texts. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  /** Starts the process where there is none, and waits for a checkpoint: not while the writer is held. */
  prepare: () => Promise<void>;
  /** Keeps transactions from starting until the function it returns is called. */
  holdWriter: () => () => void;
  /** Indexes some of the texts that wait, in another process; false: none is left. */
  indexSome: () => Promise<boolean>;
  /** The process has written: what looks after the length of the WAL. */
  afterSlice: () => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Indexes texts that large writes have left, in short transactions of another process. The writer waits for each of them, so
 * that the main thread never waits for SQLite's lock. What is left when the file is closed is indexed when it is opened
 * again. [DB144]–[DB149]
 */
export class TextIndexer {
  readonly #options: TextIndexerOptions;
  #isWanted = false;
  #isStopped = false;
  #running: Promise<void> | null = null;
  #cancelPause: () => void = () => {};

  constructor(options: TextIndexerOptions) {
    this.#options = options;
  }

  /** Texts wait, or may. Cheap; they are looked for after this turn of the event loop, when the write has been committed. */
  wake(): void {
    this.#isWanted = true;
    if (this.#running !== null || this.#isStopped) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Resolves when the slice under way has ended; no further one begins. */
  async stop(): Promise<void> {
    this.stopNow();
    await this.#running;
  }

  /** The same where no slice is under way. */
  stopNow(): void {
    this.#isStopped = true;
    this.#cancelPause();
  }

  async #run(): Promise<void> {
    let pauseMs = 0;
    while (this.#isWanted) {
      await this.#pause(pauseMs);
      if (this.#isStopped) return;
      this.#isWanted = false;
      try {
        if (await this.#options.inTurn(() => this.#slice())) this.#isWanted = true;
        pauseMs = INDEX_PAUSE_MS;
      } catch (cause) {
        if (this.#isStopped) return;
        this.#options.onFailure(cause);
        this.#isWanted = true;
        pauseMs = INDEX_RETRY_MS;
      }
    }
  }

  async #slice(): Promise<boolean> {
    const { prepare, holdWriter, indexSome, afterSlice } = this.#options;
    await prepare();
    if (this.#isStopped) return false;
    const release = holdWriter();
    let isMore: boolean;
    try {
      isMore = await indexSome();
    } finally {
      release();
    }
    await afterSlice();
    return isMore;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = ms === 0 ? undefined : this.#options.clock.after(ms, resolve);
      if (cancel === undefined) setImmediate(resolve);
      this.#cancelPause = () => {
        cancel?.();
        resolve();
      };
    });
  }
}
