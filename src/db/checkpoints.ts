import { WAL_BYTES_MAX, WAL_BYTES_STOP } from "./limits.ts";

export interface CheckpointOptions {
  walBytes: () => number;
  checkpointBytes: number;
  /** Keeps transactions from starting until the function it returns is called. */
  holdWriter: () => () => void;
  /** Moves what can be moved, in another process. */
  checkpoint: () => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Moves the WAL into the database file, in another process: a checkpoint syncs. A WAL starts over only when all of it
 * has been moved and nobody reads it, which never happens under constant writes; so past WAL_BYTES_MAX the writer waits
 * for a last, short one. [DB13]–[DB15]
 */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  #running: Promise<void> | null = null;
  #releaseWriter: (() => void) | null = null;
  /** Lengths of the WAL at which the next checkpoint runs, the writer waits for its end, and waits at once. */
  #nextBytes = 0;
  #pauseBytes = 0;
  #stopBytes = 0;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#expect(0);
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Resolves when no checkpoint runs. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Starts what the length of the WAL asks for. Cheap: after every transaction. */
  watch(): void {
    const { checkpointBytes, holdWriter, walBytes } = this.#options;
    const bytes = walBytes();
    // SQLite started the WAL over and cut it back to journal_size_limit.
    if (bytes <= checkpointBytes && this.#running === null) this.#expect(0);
    if (bytes > this.#stopBytes) this.#releaseWriter ??= holdWriter();
    if (bytes > this.#nextBytes) void this.run();
  }

  /** Resolves also when it failed: a checkpoint that did not happen loses nothing. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    const { checkpoint, checkpointBytes, holdWriter, onFailure, walBytes } = this.#options;
    if (walBytes() === 0) return;
    try {
      await checkpoint();
      if (walBytes() > this.#pauseBytes) {
        // Little is left to move now, and nothing is added to it.
        this.#releaseWriter ??= holdWriter();
        await checkpoint();
        this.#expect(walBytes());
      } else {
        this.#nextBytes = walBytes() + checkpointBytes;
      }
    } catch (error) {
      onFailure(error);
      this.#expect(walBytes());
    } finally {
      this.#releaseWriter?.();
      this.#releaseWriter = null;
    }
  }

  /** From a WAL of `bytes` that could not be made shorter, or that has just started over. */
  #expect(bytes: number): void {
    const { checkpointBytes } = this.#options;
    this.#nextBytes = bytes + checkpointBytes;
    this.#pauseBytes = bytes + Math.max(WAL_BYTES_MAX, checkpointBytes);
    this.#stopBytes = bytes + Math.max(WAL_BYTES_STOP, checkpointBytes);
  }
}
