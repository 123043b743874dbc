import { join } from "node:path";
import type { BackupsConfig } from "../../config/types.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { createBackup } from "../create/create.ts";
import { type Destination, openDestination } from "./destinations.ts";
import { backupName, isBackupName, outdated, timeOfName } from "./names.ts";

/** What a scheduled backup is told; as JSON on the standard input of its process. */
export interface BackupJob {
  dataDirectory: string;
  keep: number;
  to: BackupsConfig["to"];
}

/** What it answers; as JSON on its standard output. */
export interface BackupResult {
  name: string;
  fileCount: number;
  contentBytes: number;
  sizeBytes: number;
  /** Older backups that were deleted. */
  deleted: string[];
  /** Why older ones could not be deleted; null when there was nothing in the way. */
  rotationProblem: string | null;
}

/** Makes one backup at its destination, and deletes those that are outdated by it. Errors: as createBackup's. */
export async function runBackupJob(
  { dataDirectory, keep, to }: BackupJob,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<BackupResult> {
  const destination = openDestination(to, dataDirectory);
  const name = backupName(new Date(clock.now()));
  try {
    const file = join(destination.prepare(), name);
    const { fileCount, contentBytes, sizeBytes } = await createBackup({ dataDirectory, file, clock, signal });
    await destination.accept(file, name);
    return { name, fileCount, contentBytes, sizeBytes, ...(await rotate(destination, keep)) };
  } finally {
    destination.clean();
  }
}

/** The newest backup that is there, by its name; null: none. Errors: the destination does not answer. */
export async function newestBackup({
  to,
  dataDirectory,
}: BackupJob): Promise<{ at: Millis; sizeBytes: number } | null> {
  const destination = openDestination(to, dataDirectory);
  const newest = (await destination.names()).filter(isBackupName).sort().at(-1);
  const at = newest === undefined ? null : timeOfName(newest);
  return newest === undefined || at === null ? null : { at, sizeBytes: await destination.sizeOf(newest) };
}

/** The new backup is there whatever becomes of the old ones. */
async function rotate(
  destination: Destination,
  keep: number,
): Promise<Pick<BackupResult, "deleted" | "rotationProblem">> {
  const deleted: string[] = [];
  try {
    for (const name of outdated(await destination.names(), keep)) {
      await destination.remove(name);
      deleted.push(name);
    }
    return { deleted, rotationProblem: null };
  } catch (cause) {
    return { deleted, rotationProblem: cause instanceof Error ? cause.message : String(cause) };
  }
}
