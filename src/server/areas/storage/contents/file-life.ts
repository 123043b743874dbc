import type { Clock } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { FileStore, IncomingFile } from "../model/types.ts";

/** Delay between the deletion of a file and its unlink, so that a download that has just begun can still open it. */
const UNLINK_DELAY_MS = SECOND_MS;

interface FileLifeDeps {
  clock: Clock;
  ids: Ids;
  logger: Logger;
  /** Whether a record names the file. Errors: the records cannot be read. */
  isNamed: (fileId: string) => boolean;
  /** Called for each removed file, so that its thumbnails go too. */
  onRemove: (fileId: string) => Promise<void>;
}

/** Tracks files that no record names: those being written and those about to be removed. */
export class FileLife {
  readonly #deps: FileLifeDeps;
  readonly #pending = new Set<string>();
  /** Delayed removals, keyed by the function that cancels the delay. */
  readonly #waiting = new Map<() => void, () => Promise<void>>();
  readonly #removing = new Set<Promise<void>>();

  constructor(deps: FileLifeDeps) {
    this.#deps = deps;
  }

  /**
   * Runs `work` with a new file. Keeps the file when `work` resolves; removes it when `work` throws, unless a record may
   * name it. No sweep removes the file meanwhile.
   */
  async withNew<T>(files: FileStore, work: (incoming: IncomingFile, fileId: string) => Promise<T>): Promise<T> {
    const fileId = this.#deps.ids.uuid();
    this.#pending.add(fileId);
    try {
      const incoming = await files.create(fileId);
      let isFinished = false;
      const finish = async (): Promise<void> => {
        await incoming.finish();
        isFinished = true;
      };
      try {
        return await work({ ...incoming, finish }, fileId);
      } catch (cause) {
        // No record names a file before it is finished.
        if (!isFinished || !this.#mayBeNamed(fileId)) {
          await incoming.discard().catch(() => {});
          await files.remove(fileId).catch(() => {});
        }
        throw cause;
      }
    } finally {
      this.#pending.delete(fileId);
    }
  }

  /** Removes files that no record names any more, after UNLINK_DELAY_MS. A failed removal is left to the next sweep. */
  dispose(files: FileStore, fileIds: readonly string[]): void {
    if (fileIds.length === 0) return;
    const remove = () => this.#removeAll(files, fileIds);
    const cancel = this.#deps.clock.after(UNLINK_DELAY_MS, () => {
      this.#waiting.delete(cancel);
      void remove();
    });
    this.#waiting.set(cancel, remove);
  }

  /** Begins a file that no sweep removes until `release`. Returns its id. */
  hold(): string {
    const fileId = this.#deps.ids.uuid();
    this.#pending.add(fileId);
    return fileId;
  }

  /** Keeps sweeps from files until the returned function is called. */
  keep(fileIds: readonly string[]): () => void {
    for (const fileId of fileIds) this.#pending.add(fileId);
    return () => {
      for (const fileId of fileIds) this.#pending.delete(fileId);
    };
  }

  release(fileId: string): void {
    this.#pending.delete(fileId);
  }

  isPending(fileId: string): boolean {
    return this.#pending.has(fileId);
  }

  /** Runs every delayed removal immediately. */
  async stop(): Promise<void> {
    const left = [...this.#waiting];
    this.#waiting.clear();
    for (const [cancel, remove] of left) {
      cancel();
      void remove();
    }
    await Promise.all(this.#removing);
  }

  #removeAll(files: FileStore, fileIds: readonly string[]): Promise<void> {
    const work = this.#removeEach(files, fileIds).finally(() => this.#removing.delete(work));
    this.#removing.add(work);
    return work;
  }

  async #removeEach(files: FileStore, fileIds: readonly string[]): Promise<void> {
    for (const fileId of fileIds) {
      // A restore may have brought its record back.
      if (this.#pending.has(fileId) || this.#mayBeNamed(fileId)) continue;
      try {
        await files.remove(fileId);
        await this.#deps.onRemove(fileId);
      } catch (cause) {
        const message = "a file's bytes could not be removed; the next sweep tries again";
        this.#deps.logger.warn(message, { fileId, cause });
      }
    }
  }

  /**
   * Whether a record may name the file; true when the records cannot be read. After a failed sync it is unknown whether the
   * record, which may replace an acknowledged one, is on disk. The records tell after the restart, and the sweep then
   * removes what they do not name.
   */
  #mayBeNamed(fileId: string): boolean {
    try {
      return this.#deps.isNamed(fileId);
    } catch {
      return true;
    }
  }
}
