import { CHECKPOINT_BYTES, MORE_CHECKPOINTS_MAX, WAL_BYTES_LEFT, WAL_BYTES_MAX, WAL_BYTES_STOP } from "../limits.ts";
import type { WalState } from "./wal-sync.ts";

/** `sync`: whether to sync the checkpointed pages too. `next`: whether a request about the same file follows at once. */
export interface CheckpointRequest {
  sync: boolean;
  next: boolean;
}

export interface CheckpointOptions {
  wal: () => Pick<WalState, "bytes" | "isMoved">;
  /** Prevents transactions from starting until the returned function is called. */
  holdWriter: () => () => void;
  /** Runs a passive checkpoint in another process. */
  checkpoint: (request: CheckpointRequest) => Promise<void>;
  /**
   * Runs a checkpoint in another process and restarts the WAL if all of it has been checkpointed; a file of more than `bytesKept`
   * is truncated. It waits for the observer of commits first. The writer is paused meanwhile.
   */
  restart: (bytesKept: number) => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Decides when the WAL of a file is moved into the database file (a checkpoint) and when it restarts. The whole strategy:
 *
 * 1. SQLite's own checkpoints are off: they sync, on the main thread. Past CHECKPOINT_BYTES, another process moves what is there
 *    while the writer goes on.
 * 2. Once the whole WAL has been moved, it can restart, so that its file does not grow. A restart syncs the new header and may
 *    truncate the file, so the other process does it, by a commit that changes only the commit row, while the writer is held.
 * 3. SQLite restarts a moved WAL in the next commit by itself. `mayBegin` keeps the writer from that: it is held until the other
 *    process has done it, after the observer of commits has been waited for.
 * 4. Under constant writes the whole WAL is never moved. Past WAL_BYTES_MAX, further checkpoints sync what was written during the
 *    first, and the writer is held for the short rest. Past WAL_BYTES_STOP it is held at once.
 * 5. A reader of an old snapshot prevents a restart. The writer goes on, and waits again WAL_BYTES_MAX later.
 *
 * [DB13]–[DB15], [DB170], [DB320], [DB321], [DB361]
 */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  #running: Promise<void> | null = null;
  #releaseWriter: (() => void) | null = null;
  /** WAL lengths at which the next checkpoint runs, the writer waits for the end of a checkpoint, and the writer waits at once. */
  #nextBytes = 0;
  #pauseBytes = 0;
  #stopBytes = 0;
  /** The last length that was read. */
  #bytes = 0;
  /** Whether all of the WAL may have been moved without a restart. */
  #mayBeMoved = false;

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
    const { holdWriter } = this.#options;
    const bytes = this.#length();
    // SQLite restarted the WAL.
    if (bytes <= CHECKPOINT_BYTES && this.#running === null) this.#expect(0);
    if (bytes > this.#stopBytes) this.#releaseWriter ??= holdWriter();
    if (bytes > this.#nextBytes) void this.run();
  }

  /** Whether a transaction may begin: not one in which SQLite would restart the WAL. Otherwise the writer is held until it may. */
  mayBegin(): boolean {
    if (!this.#mayBeMoved) return true;
    if (!this.#options.wal().isMoved) {
      this.#mayBeMoved = this.#running !== null;
      return true;
    }
    this.#releaseWriter ??= this.#options.holdWriter();
    void this.run();
    return false;
  }

  /** Runs a checkpoint. Resolves even if it failed: a failed checkpoint loses no data. */
  run(): Promise<void> {
    this.#running ??= this.#run({ mayRestart: true }).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /**
   * Checkpoints before a close, which removes the WAL. Does not restart it, as that would write another page to checkpoint. If the
   * file stays open, its next transaction waits for the restart.
   */
  async runLast(): Promise<void> {
    await this.settled();
    this.#running ??= this.#run({ mayRestart: false }).finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  async #run({ mayRestart }: { mayRestart: boolean }): Promise<void> {
    const { checkpoint, holdWriter, onFailure, restart } = this.#options;
    try {
      if (this.#length() === 0) return;
      this.#mayBeMoved = true;
      const isLong = (): boolean => mayRestart && this.#length() > this.#pauseBytes;
      await checkpoint({ sync: false, next: isLong() });
      const isBusy = isLong();
      if (isBusy) await this.#moveMore();
      // If it is busy, little is left, and the paused writer adds nothing.
      if (isBusy || (mayRestart && this.#options.wal().isMoved)) {
        this.#releaseWriter ??= holdWriter();
        // Tried once: a reader may prevent it.
        this.#mayBeMoved = false;
        await restart(isBusy ? WAL_BYTES_STOP : CHECKPOINT_BYTES);
        this.#expect(this.#length());
      } else {
        this.#nextBytes = this.#length() + CHECKPOINT_BYTES;
      }
    } catch (error) {
      // The writer does not wait for a checkpoint that fails.
      this.#mayBeMoved = false;
      onFailure(error);
      this.#expect(this.#bytes);
    } finally {
      this.#releaseWriter?.();
      this.#releaseWriter = null;
    }
  }

  /**
   * Checkpoints and syncs what was written during the last checkpoint: each pass is shorter, and the writer waits only for what the
   * last one leaves. [DB320]
   */
  async #moveMore(): Promise<void> {
    const { checkpoint } = this.#options;
    for (let pass = 0; pass < MORE_CHECKPOINTS_MAX && this.#releaseWriter === null; pass++) {
      const bytes = this.#length();
      await checkpoint({ sync: true, next: true });
      if (this.#length() - bytes <= WAL_BYTES_LEFT) return;
    }
  }

  #length(): number {
    this.#bytes = this.#options.wal().bytes;
    return this.#bytes;
  }

  /** Sets the next lengths, for a WAL of `bytes` that could not be shortened or that has just restarted. */
  #expect(bytes: number): void {
    this.#nextBytes = bytes + CHECKPOINT_BYTES;
    this.#pauseBytes = bytes + WAL_BYTES_MAX;
    this.#stopBytes = bytes + WAL_BYTES_STOP;
  }
}
