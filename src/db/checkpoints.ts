import { WAL_BYTES_MAX } from "./limits.ts";
import type { QueryProcesses } from "./query-processes.ts";
import type { Writer } from "./writer.ts";

export interface CheckpointOptions {
  path: string;
  walBytes: () => number;
  checkpointBytes: number;
  writer: Writer;
  checkpointer: QueryProcesses;
  onFailure: (cause: unknown) => void;
}

/**
 * Moves the WAL into the database file, in another process: a checkpoint syncs. A WAL starts over only when all of it
 * has been moved and nobody reads it, which never happens under constant writes; so at WAL_BYTES_MAX the writer waits
 * for a last, short one. [DB13]–[DB15]
 */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  #running: Promise<void> | null = null;
  #nextBytes: number;
  #pauseBytes: number;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#nextBytes = options.checkpointBytes;
    this.#pauseBytes = Math.max(WAL_BYTES_MAX, options.checkpointBytes);
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Starts what the length of the WAL asks for. Cheap: after every transaction. */
  watch(): void {
    if (this.#running !== null) return;
    const walBytes = this.#options.walBytes();
    if (walBytes <= this.#options.checkpointBytes) {
      // SQLite started the WAL over and cut it back to journal_size_limit.
      this.#nextBytes = this.#options.checkpointBytes;
      this.#pauseBytes = Math.max(WAL_BYTES_MAX, this.#options.checkpointBytes);
    } else if (walBytes > this.#nextBytes) {
      void this.run();
    }
  }

  /** Resolves also when it failed: a checkpoint that did not happen loses nothing. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    const { checkpointBytes, checkpointer, onFailure, path, walBytes, writer } = this.#options;
    let release: (() => void) | null = null;
    try {
      let bytes = walBytes();
      if (bytes === 0) return;
      if (bytes > this.#pauseBytes) {
        // First without stopping the writer, so that little is left to wait for.
        await checkpointer.checkpoint(path);
        release = writer.hold();
      }
      await checkpointer.checkpoint(path);
      bytes = walBytes();
      this.#nextBytes = bytes + checkpointBytes;
      if (release !== null) this.#pauseBytes = bytes + WAL_BYTES_MAX;
    } catch (error) {
      onFailure(error);
      this.#nextBytes = walBytes() + checkpointBytes;
    } finally {
      release?.();
    }
  }
}
