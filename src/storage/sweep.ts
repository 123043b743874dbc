import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import type { FileLife } from "./garbage.ts";
import {
  EXPIRY_INTERVAL_MS,
  EXPIRY_STEP,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_FILES,
  UPLOAD_TTL_MS,
} from "./limits.ts";
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
 * Removes bytes that no record names: what a crash left between a file and its record, at start and daily, with pauses
 * between directories; and uploads and signed URLs that have expired, hourly. Resolves when nothing is under way.
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

  const sweepPlace = async (
    directories: AsyncIterable<readonly string[]>,
    remove: (fileId: string) => Promise<void>,
  ): Promise<void> => {
    let lookedAt = 0;
    for await (const fileIds of directories) {
      if (isStopped) return;
      for (const fileId of fileIds) if (isOrphan(fileId)) await remove(fileId);
      lookedAt += fileIds.length;
      if (lookedAt < SWEEP_STEP_FILES) continue;
      lookedAt = 0;
      await pause();
    }
  };
  const sweepFiles = async (): Promise<void> => {
    for (const files of deps.places) await sweepPlace(files.ids(), files.remove);
    await sweepPlace(deps.thumbs.fileIds(), deps.thumbs.remove);
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
