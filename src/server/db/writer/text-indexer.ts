import type { Database } from "bun:sqlite";
import type { Clock } from "../../../kernel/clock.ts";
import { INDEX_PAUSE_MS, INDEX_RETRY_MS } from "../limits.ts";

export interface TextIndexerOptions {
  clock: Clock;
  /** Runs `work` when no other file's slice is running, so that a paused writer never waits for another file's texts. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  /** Starts the process if it is not running, and waits for a running checkpoint. Called before the writer is paused. */
  prepare: () => Promise<void>;
  /** Prevents transactions from starting until the returned function is called. */
  holdWriter: () => () => void;
  /** Indexes some of the pending texts, in another process; false: none is left. */
  indexSome: () => Promise<boolean>;
  /** Called after the process has written, to check the length of the WAL. */
  afterSlice: () => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Indexes the pending texts of large writes, in short transactions of another process. The writer waits for each of them,
 * so that the main thread never waits for SQLite's lock. Texts that are pending when the file is closed are indexed after
 * it is opened again. [DB144]–[DB149]
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

  /** Starts indexing. Call when texts may be pending. Cheap; indexing starts after this turn of the event loop, when the write is committed. */
  wake(): void {
    this.#isWanted = true;
    if (this.#running !== null || this.#isStopped) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Resolves when the running slice has ended. No further slice begins. */
  async stop(): Promise<void> {
    this.stopNow();
    await this.#running;
  }

  /** Stops at once. Call only while no slice is running. */
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

/** The table of records whose texts are not yet indexed. Deleting a row of it indexes the record (see `ftsTriggersSql`). */
export const PENDING_TEXTS = "_platform_pending_texts";

/** Marks a record as pending; runs before the record is written. */
export const NOTE_PENDING_TEXT = `INSERT OR IGNORE INTO "${PENDING_TEXTS}" ("table", "id") VALUES (?, ?)`;

export function hasPendingTexts(sqlite: Database): boolean {
  const known = sqlite.prepare("SELECT 1 FROM sqlite_master WHERE name = ?");
  const isThere = known.get(PENDING_TEXTS) !== null;
  known.finalize();
  if (!isThere) return false;
  const first = sqlite.prepare(`SELECT 1 FROM "${PENDING_TEXTS}" LIMIT 1`);
  const isAny = first.get() !== null;
  first.finalize();
  return isAny;
}
