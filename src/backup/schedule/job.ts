import { join } from "node:path";
import type { BackupsConfig } from "../../config/types.ts";
import type { Owner } from "../../disk/owner-marker.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { createBackup } from "../create/create.ts";
import { type Destination, openDestination } from "./destinations.ts";
import { backupName, isBackupName, outdated, timeOfName } from "./names.ts";
import { claimDestination, requireOwned } from "./ownership.ts";

/** The input of a scheduled backup, as JSON on the standard input of its process. */
export interface BackupJob {
  dataDirectory: string;
  owner: Owner;
  keep: number;
  to: BackupsConfig["to"];
}

/** The result, as JSON on the standard output. */
export interface BackupResult {
  name: string;
  fileCount: number;
  contentBytes: number;
  sizeBytes: number;
  /** Older backups that were deleted. */
  deleted: string[];
  /** Why older backups could not be deleted; null if they could. */
  rotationProblem: string | null;
}

/** Makes one backup at its destination, and deletes those that are outdated by it. Errors: as createBackup's. */
export async function runBackupJob(
  { dataDirectory, owner, keep, to }: BackupJob,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<BackupResult> {
  const destination = openDestination(to, dataDirectory);
  await claimDestination(destination, { owner, clock, takeOver: false });
  const name = backupName(new Date(clock.now()));
  try {
    const file = join(destination.prepare(), name);
    const { fileCount, contentBytes, sizeBytes } = await createBackup({ dataDirectory, file, clock, signal });
    await destination.accept(file, name);
    return { name, fileCount, contentBytes, sizeBytes, ...(await rotate(destination, owner, keep)) };
  } finally {
    destination.clean();
  }
}

/** The newest backup at the destination, by its name; null: none. Errors: those of the destination. */
export async function newestBackup({
  to,
  dataDirectory,
}: BackupJob): Promise<{ at: Millis; sizeBytes: number } | null> {
  const destination = openDestination(to, dataDirectory);
  const newest = (await destination.names()).filter(isBackupName).sort().at(-1);
  const at = newest === undefined ? null : timeOfName(newest);
  return newest === undefined || at === null ? null : { at, sizeBytes: await destination.sizeOf(newest) };
}

/** Never rejects: the new backup has succeeded, whatever happens to older ones. */
async function rotate(
  destination: Destination,
  owner: Owner,
  keep: number,
): Promise<Pick<BackupResult, "deleted" | "rotationProblem">> {
  const deleted: string[] = [];
  try {
    // Another server may have taken the destination over while the backup was made.
    await requireOwned(destination, owner);
    for (const name of outdated(await destination.names(), keep)) {
      await destination.remove(name);
      deleted.push(name);
    }
    return { deleted, rotationProblem: null };
  } catch (cause) {
    return { deleted, rotationProblem: cause instanceof Error ? cause.message : String(cause) };
  }
}
