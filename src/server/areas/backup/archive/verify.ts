import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import * as layouts from "../../../../../schema/migrations/index.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { isEmptyFile, layOut, requireKnownVersion } from "../../../db/index.ts";
import { mayBeEmpty, objectPath, STORAGE_FOLDERS, STORED_TABLES, SYSTEM_FILE, scanFiles } from "../layout.ts";
import { DAMAGES_SHOWN_MAX } from "../limits.ts";
import { type ArchiveHeader, BackupError } from "../types.ts";
import { claimWorkFolder } from "../work-folder.ts";
import { restoreBackup } from "./restore.ts";

/** Opens the restored data directory as the program does, without an effect outside it, and closes it. Errors: why it cannot. */
export type TryOpening = (dataDirectory: string) => Promise<void>;

export interface Verification {
  file: string;
  /** Folder in which the scratch folder is made; default: beside the file. */
  scratch?: string | undefined;
  tryOpening: TryOpening;
  signal: AbortSignal;
}

export interface VerifiedBackup {
  header: ArchiveHeader;
  fileCount: number;
  contentBytes: number;
  databaseCount: number;
  /** Number of stored files that are not in the backup: their buckets keep them in object stores. */
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

/** Checks every database of a restored data directory, and upgrades it as a start of the program would. */
export async function verifyDatabases(
  dataDirectory: string,
  signal: AbortSignal,
): Promise<{ databaseCount: number; problems: string[] }> {
  const problems: string[] = [];
  let databaseCount = 0;
  for (const { path, kind } of scanFiles(dataDirectory)) {
    if (kind !== "database") continue;
    databaseCount++;
    problems.push(...problemsOf(dataDirectory, path));
    // A check blocks this thread: a signal that arrived meanwhile is noticed here.
    await Bun.sleep(0);
    signal.throwIfAborted();
  }
  return { databaseCount, problems };
}

function problemsOf(dataDirectory: string, path: string): string[] {
  const file = join(dataDirectory, path);
  // SQLite accepts an empty file as a sound database, and the upgrade would create its tables. A start refuses it.
  if (isEmptyFile(file) && !mayBeEmpty(path))
    return [`${path}: it is empty (0 bytes): its data was lost before the backup was made`];
  try {
    using sqlite = new Database(file, { readwrite: true, create: false });
    const found = sqlite.query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${DAMAGES_SHOWN_MAX})`).all();
    const damages = found.map((row) => row.integrity_check).filter((text) => text !== "ok");
    if (damages.length > 0) return damages.map((text) => `${path}: ${text}`);
    bringUpToDate(sqlite, path);
    return [];
  } catch (cause) {
    return [`${path}: ${reasonOf(cause)}`];
  }
}

/** Upgrades a database to the present version. Errors: the database has a later version; a step fails. */
function bringUpToDate(sqlite: Database, path: string): void {
  const layout = layoutOf(path);
  if (layout === undefined) return;
  // The steps of an index need its dimensions, which only the config has.
  if (layout === layouts.vectorizeLayout) requireKnownVersion(sqlite, layout);
  else layOut(layout)(sqlite);
}

/** Returns the layout of a database; undefined for files of d1, whose tables are made by their users. */
export function layoutOf(path: string): layouts.FileLayout | undefined {
  const [top = ""] = path.split("/");
  const name = top === "databases" ? "tables" : top.replace(/\.db$/, "");
  return Object.values(layouts).find((layout) => layout.name === name);
}

/** Counts the stored contents that system.db names and that are not in the directory: those of buckets with a backend. */
export function countElsewhere(dataDirectory: string): number {
  using sqlite = new Database(join(dataDirectory, SYSTEM_FILE), { readonly: true });
  let missing = 0;
  for (const folder of STORAGE_FOLDERS) {
    for (const table of STORED_TABLES[folder]) {
      const named = sqlite.query<{ fileId: string }, []>(`SELECT fileId FROM ${table}`);
      for (const { fileId } of named.iterate()) {
        if (!existsSync(join(dataDirectory, objectPath(folder, fileId)))) missing++;
      }
    }
  }
  return missing;
}
