import { WAL_BYTES_MAX, WAL_BYTES_STOP } from "../limits.ts";

export interface CheckpointOptions {
  walBytes: () => number;
  checkpointBytes: number;
  /** Keeps transactions from starting until the function it returns is called. */
  holdWriter: () => () => void;
  /** Moves what can be moved, in another process. */
  checkpoint: () => Promise<void>;
  /** The same, and starts the WAL over where all of it has been moved; the writer is held meanwhile. */
  restart: () => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Moves the WAL into the database file, in another process, because a checkpoint syncs. Starting the WAL over syncs too, and
 * cuts the file: the other process also does that, or the next commit would do it on the main thread. It needs the whole WAL
 * moved, which never happens under constant writes; so past WAL_BYTES_MAX the writer waits for it. [DB13]–[DB15]
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
    this.#running ??= this.#run({ mayRestart: true }).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Moves the WAL before a close, which removes the file: starting it over would leave a page to move. */
  async runLast(): Promise<void> {
    await this.settled();
    this.#running ??= this.#run({ mayRestart: false }).finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  async #run({ mayRestart }: { mayRestart: boolean }): Promise<void> {
    const { checkpoint, checkpointBytes, holdWriter, onFailure, restart, walBytes } = this.#options;
    const bytesBefore = walBytes();
    if (bytesBefore === 0) return;
    try {
      await checkpoint();
      // Where nothing was written meanwhile all of it has been moved; else little is left, and nothing is added to it.
      if (mayRestart && (walBytes() > this.#pauseBytes || walBytes() === bytesBefore)) {
        this.#releaseWriter ??= holdWriter();
        await restart();
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
