import { join } from "node:path";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { unlessAborted } from "../../../../kernel/time/deadline.ts";
import type { BackupsConfig } from "../../../config/types.ts";
import type { Owner } from "../../../disk/owner-marker.ts";
import { createBackup } from "../archive/create.ts";
import { type TryOpening, verifyBackup } from "../archive/verify.ts";
import { type Destination, openDestination } from "../destination/destinations.ts";
import { failedName, isFailedName, nextName, outdated } from "../destination/names.ts";
import { claimDestination, noteVerified, requireOwned } from "../destination/notes.ts";
import { BackupError } from "../types.ts";

/** The input of a backup, as JSON on the standard input of its process. */
export interface BackupJob {
  dataDirectory: string;
  owner: Owner;
  keep: number;
  /** Whether the backup is verified before it counts. */
  verify: boolean;
  to: BackupsConfig["to"];
}

/** The result, as JSON on the standard output. */
export interface BackupResult {
  name: string;
  fileCount: number;
  contentBytes: number;
  sizeBytes: number;
  /** When it was verified; null: it was not. */
  verifiedAt: Millis | null;
  /** Older backups that were deleted. */
  deleted: string[];
  /** Why older backups could not be deleted; null if they could. */
  rotationProblem: string | null;
}

/**
 * Makes one backup at its destination, and deletes those that are outdated by it. One that does not hold is kept aside, and
 * deletes no other than the previous one of its kind. Errors: as createBackup's and verifyBackup's.
 */
export async function runBackupJob(
  { dataDirectory, owner, keep, verify, to }: BackupJob,
  { clock, signal, tryOpening }: { clock: Clock; signal: AbortSignal; tryOpening: TryOpening },
): Promise<BackupResult> {
  const destination = openDestination(to, dataDirectory, clock);
  await claimDestination(destination, { owner, clock, takeOver: false });
  try {
    const folder = destination.prepare();
    const present = (await destination.backups()).map((backup) => backup.name);
    const name = nextName(present, clock.now());
    const file = join(folder, name);
    // Before it has its name: what a SIGKILL leaves of one that was not verified does not count as a backup.
    const check = async (archivePath: string): Promise<void> => {
      if (verify) await verifyOrSetAside(destination, { archivePath, name, owner, tryOpening, signal });
    };
    const { fileCount, contentBytes, sizeBytes } = await createBackup({ dataDirectory, file, check, clock, signal });
    // An upload cannot be cancelled: it ends with the process, and leaves no object.
    await unlessAborted(destination.accept(file, name), signal);
    const verifiedAt = verify ? clock.now() : null;
    if (verifiedAt !== null) await noteVerified(destination, name, verifiedAt);
    return {
      name,
      fileCount,
      contentBytes,
      sizeBytes,
      verifiedAt,
      ...(await rotate(destination, owner, { made: name, keep })),
    };
  } finally {
    destination.clean();
  }
}

interface Candidate {
  archivePath: string;
  name: string;
  owner: Owner;
  tryOpening: TryOpening;
  signal: AbortSignal;
}

/**
 * A backup that does not hold may still be all there is, so it is kept under another name: only one, as every further backup of
 * a damaged database fails as well. Of a cancelled one nothing is left. Errors: those of verifyBackup.
 */
async function verifyOrSetAside(
  destination: Destination,
  { archivePath, name, owner, tryOpening, signal }: Candidate,
): Promise<void> {
  try {
    await verifyBackup({ file: archivePath, tryOpening, signal });
  } catch (cause) {
    if (signal.aborted) throw cause;
    await requireOwned(destination, owner);
    await destination.accept(archivePath, failedName(name));
    for (const { name: other } of await destination.backups()) {
      if (isFailedName(other) && other !== failedName(name)) await destination.remove(other);
    }
    const reason = reasonOf(cause);
    throw new BackupError(
      `The backup was made and is kept as ${failedName(name)}, but could not be verified: ${reason}`,
    );
  }
}

/** Never rejects: the new backup has succeeded, whatever happens to older ones. */
async function rotate(
  destination: Destination,
  owner: Owner,
  newest: { made: string; keep: number },
): Promise<Pick<BackupResult, "deleted" | "rotationProblem">> {
  const deleted: string[] = [];
  try {
    // Another server may have taken the destination over while the backup was made.
    await requireOwned(destination, owner);
    const present = (await destination.backups()).map(({ name }) => name);
    for (const name of outdated(present, newest)) {
      await destination.remove(name);
      deleted.push(name);
    }
    return { deleted, rotationProblem: null };
  } catch (cause) {
    return { deleted, rotationProblem: reasonOf(cause) };
  }
}

/** The input of a verification, as JSON on the standard input of its process. */
export interface VerifyJob {
  dataDirectory: string;
  to: BackupsConfig["to"];
  /** The name of a backup at the destination. */
  stored: string;
}

/** The result, as JSON on the standard output. */
export interface VerifyResult {
  fileCount: number;
  contentBytes: number;
  databaseCount: number;
  verifiedAt: Millis;
}

/** Verifies one backup at its destination, and notes there that it held. Errors: as verifyBackup's; those of the destination. */
export async function verifyStored(
  { dataDirectory, to, stored }: VerifyJob,
  { clock, signal, tryOpening }: { clock: Clock; signal: AbortSignal; tryOpening: TryOpening },
): Promise<VerifyResult> {
  const destination = openDestination(to, dataDirectory, clock);
  try {
    const file = await destination.fetch(stored, signal);
    const { fileCount, contentBytes, databaseCount } = await verifyBackup({ file, tryOpening, signal });
    const verifiedAt = clock.now();
    await noteVerified(destination, stored, verifiedAt);
    return { fileCount, contentBytes, databaseCount, verifiedAt };
  } finally {
    destination.clean();
  }
}
