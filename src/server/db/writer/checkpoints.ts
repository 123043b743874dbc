import { CHECKPOINT_BYTES, MORE_CHECKPOINTS_MAX, WAL_BYTES_LEFT, WAL_BYTES_MAX, WAL_BYTES_STOP } from "../limits.ts";

/** `sync`: whether to sync the checkpointed pages too. `next`: whether a request about the same file follows at once. */
export interface CheckpointRequest {
  sync: boolean;
  next: boolean;
}

export interface CheckpointOptions {
  /** Returns the length of the WAL's content; its file may be longer. */
  walBytes: () => number;
  /** Prevents transactions from starting until the returned function is called. */
  holdWriter: () => () => void;
  /** Runs a passive checkpoint in another process. */
  checkpoint: (request: CheckpointRequest) => Promise<void>;
  /**
   * Runs a checkpoint in another process and restarts the WAL if all of it has been checkpointed; a file of more than `bytesKept`
   * is truncated. The writer is paused meanwhile.
   */
  restart: (bytesKept: number) => Promise<void>;
  onFailure: (cause: unknown) => void;
}

/**
 * Checkpoints the WAL: moves it into the database file. This runs in another process, because a checkpoint syncs. Restarting the
 * WAL also syncs, and may truncate the file; the other process does that too, as otherwise the next commit would do it on the main
 * thread. A restart needs a checkpoint of the whole WAL, which never happens under constant writes. So past WAL_BYTES_MAX the
 * writer waits for it. [DB13]–[DB15]
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

  /** Runs a checkpoint. Resolves even if it failed: a failed checkpoint loses no data. */
  run(): Promise<void> {
    this.#running ??= this.#run({ mayRestart: true }).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Checkpoints before a close, which removes the WAL. Does not restart it, as that would write another page to checkpoint. */
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
      const bytesBefore = this.#length();
      if (bytesBefore === 0) return;
      const isLong = (): boolean => mayRestart && this.#length() > this.#pauseBytes;
      await checkpoint({ sync: false, next: isLong() });
      const isBusy = isLong();
      if (isBusy) await this.#moveMore();
      // If nothing was written meanwhile, the whole WAL has been checkpointed. Otherwise little is left, and the paused writer adds
      // nothing.
      if (isBusy || (mayRestart && this.#length() === bytesBefore)) {
        this.#releaseWriter ??= holdWriter();
        await restart(isBusy ? WAL_BYTES_STOP : CHECKPOINT_BYTES);
        this.#expect(this.#length());
      } else {
        this.#nextBytes = this.#length() + CHECKPOINT_BYTES;
      }
    } catch (error) {
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
    this.#bytes = this.#options.walBytes();
    return this.#bytes;
  }

  /** Sets the next lengths, for a WAL of `bytes` that could not be shortened or that has just restarted. */
  #expect(bytes: number): void {
    this.#nextBytes = bytes + CHECKPOINT_BYTES;
    this.#pauseBytes = bytes + WAL_BYTES_MAX;
    this.#stopBytes = bytes + WAL_BYTES_STOP;
  }
}
