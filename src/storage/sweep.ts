import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import type { FileLife } from "./garbage.ts";
import { EXPIRY_INTERVAL_MS, EXPIRY_STEP, SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS, UPLOAD_TTL_MS } from "./limits.ts";
import type { StorageStore } from "./store.ts";
import type { Thumbs } from "./thumbs.ts";
import type { FileStore } from "./types.ts";

export interface SweepDeps {
  store: StorageStore;
  life: FileLife;
  /** Where bytes lie: every bucket's, and the parts of uploads. */
  places: readonly FileStore[];
  staging: FileStore;
  thumbs: Thumbs;
  clock: Clock;
  logger: Logger;
}

/**
 * Removes bytes that no record names: what a crash left between a file and its record, at start and daily, one directory
 * at a time with pauses; and uploads and signed URLs that have expired, hourly. Resolves when nothing is under way.
 */
export function startSweeps(deps: SweepDeps): () => Promise<void> {
  const { store, life, clock, logger } = deps;
  let isStopped = false;
  const cancels = new Set<() => void>();
  const running = new Set<Promise<void>>();

  const later = (delayMs: number, work: () => void): void => {
    const cancel = clock.after(delayMs, () => {
      cancels.delete(cancel);
      work();
    });
    cancels.add(cancel);
  };
  /** Ended by `stop`, which then finds `isStopped` set. */
  const pause = () =>
    new Promise<void>((resume) => {
      const cancel = clock.after(SWEEP_PAUSE_MS, resume);
      if (isStopped) {
        cancel();
        resume();
      }
    });

  const isOrphan = (fileId: string): boolean => !life.isPending(fileId) && !store.hasFile(fileId);

  const sweepFiles = async (): Promise<void> => {
    for (const files of deps.places) {
      for await (const fileIds of files.ids()) {
        if (isStopped) return;
        for (const fileId of fileIds) if (isOrphan(fileId)) await files.remove(fileId);
        await pause();
      }
    }
    for await (const fileIds of deps.thumbs.fileIds()) {
      if (isStopped) return;
      for (const fileId of fileIds) if (isOrphan(fileId)) await deps.thumbs.remove(fileId);
      await pause();
    }
  };

  const expire = async (): Promise<void> => {
    const until = clock.now() - UPLOAD_TTL_MS;
    for (let ids = store.expiredUploads(until, EXPIRY_STEP); ids.length > 0 && !isStopped; ) {
      const parts = await store.write((storage) =>
        ids.flatMap((id) => {
          const removed = storage.parts(id);
          storage.removeUpload(id);
          return removed;
        }),
      );
      const fileIds = parts.map(({ fileId }) => fileId);
      life.dispose(deps.staging, fileIds);
      ids = store.expiredUploads(until, EXPIRY_STEP);
    }
    while (!isStopped && (await store.removeExpiredGrants(clock.now(), EXPIRY_STEP)) === EXPIRY_STEP) await pause();
  };

  const repeat = (name: string, work: () => Promise<void>, intervalMs: number): void => {
    const run = work()
      .catch((cause: unknown) => logger.error(`storage: ${name} failed`, { cause }))
      .then(() => {
        running.delete(run);
        if (!isStopped) later(intervalMs, () => repeat(name, work, intervalMs));
      });
    running.add(run);
  };
  // After the start has answered: the first pass waits for the loop's next turn.
  later(0, () => repeat("sweeping files", sweepFiles, SWEEP_INTERVAL_MS));
  later(0, () => repeat("expiring uploads", expire, EXPIRY_INTERVAL_MS));

  return async () => {
    isStopped = true;
    for (const cancel of cancels) cancel();
    await Promise.all(running);
  };
}
