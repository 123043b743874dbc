import type { Millis } from "../../../../kernel/clock.ts";
import type { Destination } from "./destinations.ts";
import { isBackupName, isFailedName, timeOfName } from "./names.ts";
import { readVerified } from "./verified.ts";

export interface PresentBackups {
  /** The newest backup, by its name; null: none. */
  newest: { at: Millis; sizeBytes: number } | null;
  /** When a backup was last verified; null: never. */
  verifiedAt: Millis | null;
  /** Whether a backup that could not be verified is newer than all others. */
  hasLastFailed: boolean;
}

/** What earlier backups left at the destination. Errors: those of the destination. */
export async function presentBackups(destination: Destination): Promise<PresentBackups> {
  const present = await destination.backups();
  const newest = present.findLast(({ name }) => isBackupName(name));
  const at = newest === undefined ? null : timeOfName(newest.name);
  const failed = present.findLast(({ name }) => isFailedName(name));
  return {
    newest: newest === undefined || at === null ? null : { at, sizeBytes: newest.sizeBytes },
    verifiedAt: (await readVerified(destination)).at,
    hasLastFailed: failed !== undefined && (newest === undefined || failed.name > newest.name),
  };
}
