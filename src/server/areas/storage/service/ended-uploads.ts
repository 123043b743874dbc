import type { Logger } from "../../../../kernel/logger.ts";
import type { Paces } from "../../../../kernel/time/pace.ts";
import type { FileLife } from "../contents/file-life.ts";
import { EXPIRY_STEP } from "../limits.ts";
import type { StorageStore } from "../store/store.ts";
import type { FileStore } from "../model/types.ts";

/**
 * The parts of uploads that have ended, up to 10,000 each, which are removed in steps. What a stop leaves counts as expired and
 * is removed after the next start.
 */
export interface EndedUploads {
  /** In the background. The next sweep removes what this cannot. */
  clear(uploadId: string): void;
  /** Resolves when nothing of the upload is left, or the server stops. */
  clearNow(uploadId: string): Promise<void>;
  /** Begins no further step. Resolves when none is under way. */
  stop(): Promise<void>;
}

export function createEndedUploads(deps: {
  store: StorageStore;
  life: FileLife;
  staging: FileStore;
  paces: Paces;
  logger: Logger;
}): EndedUploads {
  const { store, life, staging, logger } = deps;
  const running = new Set<Promise<void>>();
  let isStopped = false;

  const clearNow = async (uploadId: string): Promise<void> => {
    const pace = deps.paces();
    while (!isStopped) {
      const parts = await store.write((storage) => {
        const taken = storage.takeParts(uploadId, EXPIRY_STEP);
        if (taken.length < EXPIRY_STEP) storage.removeUpload(uploadId);
        return taken;
      });
      life.dispose(
        staging,
        parts.map(({ fileId }) => fileId),
      );
      if (parts.length < EXPIRY_STEP) return;
      await pace.next();
    }
  };

  return {
    clearNow,
    clear(uploadId) {
      const work = clearNow(uploadId)
        .catch((cause: unknown) => {
          logger.warn("the parts of an upload could not be removed; the next sweep tries again", { uploadId, cause });
        })
        .finally(() => running.delete(work));
      running.add(work);
    },
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}
