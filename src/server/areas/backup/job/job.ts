import { join } from "node:path";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { unlessAborted } from "../../../../kernel/time/deadline.ts";
import type { BackupsPlace } from "../../../config/types.ts";
import type { Owner } from "../../../disk/owner-marker.ts";
import { createBackup } from "../archive/create.ts";
import { type TryOpening, verifyBackup } from "../archive/verify.ts";
import { type Destination, openDestination } from "../destination/destinations.ts";
import { failedName, isFailedName, nextName, outdated } from "../destination/names.ts";
import { claimDestination, noteVerified, requireOwned } from "../destination/notes.ts";
import { BackupError } from "../types.ts";

/** Input of a backup, as JSON on the standard input of its process. */
export interface BackupJob {
  dataDirectory: string;
  owner: Owner;
  keep: number;
  /** Whether the backup is verified before it counts. */
  verify: boolean;
  to: BackupsPlace;
}

/** Result of a backup, as JSON on the standard output. */
export interface BackupResult {
  name: string;
  fileCount: number;
  contentBytes: number;
  sizeBytes: number;
  /** Time of the verification; null: not verified. */
  verifiedAt: Millis | null;
  /** Names of the older backups that were deleted. */
  deleted: string[];
  /** Why older backups could not be deleted; null if they could. */
  rotationProblem: string | null;
}

/**
 * Makes one backup at its destination, and deletes those that it makes outdated. One that fails verification is set aside,
 * and only the previous one set aside is deleted. Errors: those of createBackup and verifyBackup.
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
    // Verified before the rename: what a SIGKILL leaves of an unverified archive does not count as a backup.
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
 * Verifies an archive, and sets it aside under another name when verification fails, as it may still be all there is. Only
 * one is kept: every further backup of a damaged database fails as well. A cancelled verification leaves nothing. Errors:
 * those of verifyBackup.
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

/** Deletes outdated backups. Never rejects: the new backup has succeeded, whatever happens to older ones. */
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

/** Input of a verification, as JSON on the standard input of its process. */
export interface VerifyJob {
  dataDirectory: string;
  to: BackupsPlace;
  /** The name of a backup at the destination. */
  stored: string;
}

/** Result of a verification, as JSON on the standard output. */
export interface VerifyResult {
  fileCount: number;
  contentBytes: number;
  databaseCount: number;
  verifiedAt: Millis;
}

/**
 * Verifies one backup at its destination, and records there when it succeeded. Errors: those of verifyBackup and of the
 * destination.
 */
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
