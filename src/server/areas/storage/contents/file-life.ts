import type { Clock } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { UNLINK_DELAY_MS } from "../limits.ts";
import type { FileStore, IncomingFile } from "../model/types.ts";

/** Files that no record names: those that are being written, and those that are about to be removed. */
export interface FileLife {
  /**
   * Runs `work` with a new file, which is kept when `work` resolves and removed when it throws, unless a record may name it. No
   * sweep removes it meanwhile.
   */
  withNew<T>(files: FileStore, work: (incoming: IncomingFile, fileId: string) => Promise<T>): Promise<T>;
  /** Removes files that no record names any more, after UNLINK_DELAY_MS. The next sweep removes what this cannot. */
  dispose(files: FileStore, fileIds: readonly string[]): void;
  isPending(fileId: string): boolean;
  /** Removes at once what still waits for its delay. */
  stop(): Promise<void>;
}

export function createFileLife(deps: {
  clock: Clock;
  ids: Ids;
  logger: Logger;
  /** Whether a record names the file. Errors: the records cannot be read. */
  isNamed: (fileId: string) => boolean;
  /** Called for each file that is removed: its thumbnails go too. */
  onRemove: (fileId: string) => Promise<void>;
}): FileLife {
  const pending = new Set<string>();
  const waiting = new Map<() => void, () => Promise<void>>();
  const removing = new Set<Promise<void>>();

  /**
   * After a failed sync nobody knows whether the record is on disk, in place of one that was acknowledged: the records, which
   * cannot be read then, tell it after the restart, and the sweep removes what they do not name.
   */
  const mayBeNamed = (fileId: string): boolean => {
    try {
      return deps.isNamed(fileId);
    } catch {
      return true;
    }
  };
  const removeAll = async (files: FileStore, fileIds: readonly string[]): Promise<void> => {
    for (const fileId of fileIds) {
      try {
        await files.remove(fileId);
        await deps.onRemove(fileId);
      } catch (cause) {
        deps.logger.warn("a file's bytes could not be removed; the next sweep tries again", { fileId, cause });
      }
    }
  };
  const track = (work: Promise<void>): Promise<void> => {
    removing.add(work);
    return work.finally(() => removing.delete(work));
  };

  return {
    async withNew(files, work) {
      const fileId = deps.ids.uuid();
      pending.add(fileId);
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
          if (!isFinished || !mayBeNamed(fileId)) {
            await incoming.discard().catch(() => {});
            await files.remove(fileId).catch(() => {});
          }
          throw cause;
        }
      } finally {
        pending.delete(fileId);
      }
    },
    dispose(files, fileIds) {
      if (fileIds.length === 0) return;
      const remove = () => track(removeAll(files, fileIds));
      const cancel = deps.clock.after(UNLINK_DELAY_MS, () => {
        waiting.delete(cancel);
        void remove();
      });
      waiting.set(cancel, remove);
    },
    isPending: (fileId) => pending.has(fileId),
    async stop() {
      const left = [...waiting];
      waiting.clear();
      for (const [cancel, remove] of left) {
        cancel();
        void remove();
      }
      await Promise.all(removing);
    },
  };
}
