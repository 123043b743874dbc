import type { Clock, Millis } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import type { Paces } from "../../kernel/pace.ts";
import {
  EXPIRY_INTERVAL_MS,
  EXPIRY_STEP,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_FILES,
  UPLOAD_TTL_MS,
} from "../limits.ts";
import type { EndedUploads } from "../multipart/ended-uploads.ts";
import type { StorageStore } from "../store.ts";
import type { Thumbs } from "../thumbs/thumbs.ts";
import type { FileStore, StoredId } from "../types.ts";
import type { FileLife } from "./file-life.ts";

export interface SweptPlace {
  files: FileStore;
  /** How long bytes that no record names stay. */
  graceMs: Millis;
  /** Asked before each sweep; false: it belongs to another server by now. */
  isOurs(): Promise<boolean>;
}

export interface SweepDeps {
  store: StorageStore;
  life: FileLife;
  /** Where bytes lie: every bucket's, and the parts of uploads. */
  places: readonly SweptPlace[];
  ended: EndedUploads;
  thumbs: Thumbs;
  paces: Paces;
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
    directories: AsyncIterable<readonly StoredId[]>,
    remove: (fileId: string) => Promise<void>,
    graceMs: Millis = 0,
  ): Promise<void> => {
    let lookedAt = 0;
    const isOld = (writtenAt: Millis | null): boolean => writtenAt === null || writtenAt + graceMs <= clock.now();
    for await (const files of directories) {
      if (isStopped) return;
      const pace = deps.paces();
      for (const { fileId, writtenAt } of files) {
        if (isStopped) return;
        if (isOld(writtenAt) && isOrphan(fileId)) await remove(fileId);
        if (pace.isDue()) await pace.next();
      }
      lookedAt += files.length;
      if (lookedAt < SWEEP_STEP_FILES) continue;
      lookedAt = 0;
      await pause();
    }
  };
  const sweepFiles = async (): Promise<void> => {
    for (const { files, graceMs, isOurs } of deps.places) {
      try {
        if (await isOurs()) await sweepPlace(files.ids(), files.remove, graceMs);
        else logger.error("storage: an object store belongs to another data directory by now; it is not swept");
      } catch (cause) {
        // One store that does not answer keeps no other from being swept.
        logger.error("storage: a place could not be swept; it is tried again in a day", { cause });
      }
    }
    await sweepPlace(deps.thumbs.fileIds(), deps.thumbs.remove);
  };

  const expire = async (): Promise<void> => {
    const until = clock.now() - UPLOAD_TTL_MS;
    for (let ids = store.expiredUploads(until, EXPIRY_STEP); ids.length > 0 && !isStopped; ) {
      for (const id of ids) await deps.ended.clearNow(id);
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
