import { MORE_CHECKPOINTS_MAX, WAL_BYTES_LEFT, WAL_BYTES_MAX, WAL_BYTES_STOP } from "../limits.ts";

export interface CheckpointOptions {
  walBytes: () => number;
  checkpointBytes: number;
  /** Prevents transactions from starting until the returned function is called. */
  holdWriter: () => () => void;
  /** Runs a passive checkpoint in another process. */
  checkpoint: () => Promise<void>;
  /** Runs a checkpoint in another process and restarts the WAL if all of it has been moved. The writer is paused meanwhile. */
  restart: () => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Moves the WAL into the database file. This runs in another process, because a checkpoint syncs. Restarting the WAL also
 * syncs, and truncates the file. The other process does that too; otherwise the next commit would do it on the main thread.
 * A restart needs the whole WAL to be moved, which never happens under constant writes. So past WAL_BYTES_MAX the writer
 * waits for it. [DB13]–[DB15]
 */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  #running: Promise<void> | null = null;
  #releaseWriter: (() => void) | null = null;
  /** WAL lengths at which the next checkpoint runs, the writer waits for the end of a checkpoint, and the writer waits at once. */
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

  /** Resolves when no checkpoint is running. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Starts a checkpoint or pauses the writer if the WAL is long enough. Cheap; called after every transaction. */
  watch(): void {
    const { checkpointBytes, holdWriter, walBytes } = this.#options;
    const bytes = walBytes();
    // SQLite restarted the WAL and truncated it to journal_size_limit.
    if (bytes <= checkpointBytes && this.#running === null) this.#expect(0);
    if (bytes > this.#stopBytes) this.#releaseWriter ??= holdWriter();
    if (bytes > this.#nextBytes) void this.run();
  }

  /** Resolves even if the checkpoint failed: a failed checkpoint loses no data. */
  run(): Promise<void> {
    this.#running ??= this.#run({ mayRestart: true }).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Moves the WAL before a close, which removes the WAL. Does not restart it, as that would write another page to move. */
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
      if (mayRestart && walBytes() > this.#pauseBytes) await this.#moveMore(bytesBefore);
      // If nothing was written meanwhile, the whole WAL has been moved. Otherwise little is left, and the paused writer adds nothing.
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

  /** Moves what was written during the last checkpoint: each one is shorter, and the writer waits for the last of them only. */
  async #moveMore(movedBytes: number): Promise<void> {
    const { checkpoint, walBytes } = this.#options;
    let moved = movedBytes;
    for (let pass = 0; pass < MORE_CHECKPOINTS_MAX && this.#releaseWriter === null; pass++) {
      const bytes = walBytes();
      if (bytes - moved <= WAL_BYTES_LEFT) return;
      await checkpoint();
      moved = bytes;
    }
  }

  /** Sets the next lengths, for a WAL of `bytes` that could not be shortened or that has just restarted. */
  #expect(bytes: number): void {
    const { checkpointBytes } = this.#options;
    this.#nextBytes = bytes + checkpointBytes;
    this.#pauseBytes = bytes + Math.max(WAL_BYTES_MAX, checkpointBytes);
    this.#stopBytes = bytes + Math.max(WAL_BYTES_STOP, checkpointBytes);
  }
}
