import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { reasonOf } from "../../../../kernel/errors.ts";
import { restoreBackup } from "../restore/restore.ts";
import { type ArchiveHeader, BackupError } from "../types.ts";
import { claimWorkFolder } from "../work-folder.ts";
import { countElsewhere, verifyDatabases } from "./databases.ts";

/** Opens the restored data directory as the program does, without an effect outside it, and closes it. Errors: why it cannot. */
export type TryOpening = (dataDirectory: string) => Promise<void>;

export interface Verification {
  file: string;
  /** Where the scratch folder is made; default: beside the file. */
  scratch?: string | undefined;
  tryOpening: TryOpening;
  signal: AbortSignal;
}

export interface VerifiedBackup {
  header: ArchiveHeader;
  fileCount: number;
  contentBytes: number;
  databaseCount: number;
  /** Stored files that are not in the backup: their buckets keep them in object stores. */
  elsewhereCount: number;
}

/**
 * Restores a backup into a scratch folder, compares every hash, checks every database, and opens the result. The scratch folder
 * is removed in every case; what a killed process leaves is removed by the next verification. Errors: BackupError with
 * everything that was found; the folder is not writable; the disk is full. Rules: SPEC.md.
 */
export async function verifyBackup({ file, scratch, tryOpening, signal }: Verification): Promise<VerifiedBackup> {
  const path = resolve(file);
  if (!existsSync(path)) throw new BackupError(`There is no file ${path}`);
  const place = scratch === undefined ? dirname(path) : resolve(scratch);
  if (!existsSync(place)) throw new BackupError(`There is no folder ${place} for the scratch folder`);
  const work = claimWorkFolder(join(place, `${basename(path)}.verify`), { work: "verification" });
  try {
    const dataDirectory = work.pathOf("data");
    const { header, fileCount, contentBytes } = await restoreBackup({ file: path, dataDirectory, signal });
    const { databaseCount, problems } = await verifyDatabases(dataDirectory, signal);
    const elsewhereCount = problems.length === 0 ? countElsewhere(dataDirectory) : 0;
    if (problems.length === 0) await tryOpening(dataDirectory).catch((cause) => problems.push(doesNotOpen(cause)));
    signal.throwIfAborted();
    if (problems.length > 0) throw new BackupError([`${path} does not hold:`, ...problems].join("\n  "));
    return { header, fileCount, contentBytes, databaseCount, elsewhereCount };
  } finally {
    work.remove();
  }
}

const doesNotOpen = (cause: unknown): string => `the program cannot open it: ${reasonOf(cause)}`;
