import { type Clock, type Millis, pause } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { unlessAborted } from "../../../../kernel/time/deadline.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { FileLife } from "../contents/file-life.ts";
import type { Thumbs } from "../contents/thumbs.ts";
import {
  EXPIRY_INTERVAL_MS,
  EXPIRY_STEP,
  RECEIPT_TTL_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_FILES,
  UPLOAD_TTL_MS,
} from "../limits.ts";
import type { StoredId, SweptPlace } from "../model/types.ts";
import type { StorageStore } from "../store/store.ts";
import type { EndedUploads } from "./multipart.ts";
import type { RecordFileService } from "./record-files.ts";

export interface SweepDeps {
  store: StorageStore;
  life: FileLife;
  /** Places with files: those of buckets, and the parts of uploads. */
  places: readonly SweptPlace[];
  ended: EndedUploads;
  recordFiles: RecordFileService;
  thumbs: Thumbs;
  paces: () => Pace;
  clock: Clock;
  logger: Logger;
}

/**
 * Removes files that no record names, which a crash leaves between a file and its record: at start and daily, with pauses.
 * Removes expired uploads and grants hourly. Returns a function that stops the sweeps; it resolves when nothing is under
 * way.
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
  const stopping = new AbortController();
  /** Pauses. Ends at once when the sweeps are stopped. */
  const rest = (): Promise<void> => unlessAborted(pause(clock, SWEEP_PAUSE_MS), stopping.signal).catch(() => {});

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
      await rest();
    }
  };
  let isFirst = true;
  const sweepFiles = async (): Promise<void> => {
    // A start opens no instances for this: it looks at what was under way alone.
    await deps.recordFiles.sweep({ isWhole: !isFirst, rest });
    isFirst = false;
    for (const { files, graceMs, isOurs } of deps.places) {
      try {
        if (await isOurs()) await sweepPlace(files.ids(), files.remove, graceMs);
        else logger.error("storage: another data directory has taken an object store over; it is not swept");
      } catch (cause) {
        // A store that does not respond must not prevent the others from being swept.
        logger.error("storage: a place could not be swept; the next attempt is in a day", { cause });
      }
    }
    await sweepPlace(deps.thumbs.fileIds(), (fileId) => deps.thumbs.remove(fileId));
  };

  const expire = async (): Promise<void> => {
    const until = clock.now() - UPLOAD_TTL_MS;
    for (let ids = store.expiredUploads(until, EXPIRY_STEP); ids.length > 0 && !isStopped; ) {
      for (const id of ids) await deps.ended.clearNow(id);
      ids = store.expiredUploads(until, EXPIRY_STEP);
    }
    while (!isStopped && (await store.removeExpiredGrants(clock.now(), EXPIRY_STEP)) === EXPIRY_STEP) await rest();
    const old = clock.now() - RECEIPT_TTL_MS;
    while (!isStopped && (await store.removeReceipts(old, EXPIRY_STEP)) === EXPIRY_STEP) await rest();
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
  // The first pass waits for the next turn of the event loop, to keep the start fast.
  later(0, () => repeat("sweeping files", sweepFiles, SWEEP_INTERVAL_MS));
  later(0, () => repeat("expiring uploads", expire, EXPIRY_INTERVAL_MS));

  return async () => {
    isStopped = true;
    for (const cancel of cancels) cancel();
    stopping.abort();
    await Promise.all(running);
  };
}
