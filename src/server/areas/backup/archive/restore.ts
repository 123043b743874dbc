import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { lockDirectory } from "../../../db/index.ts";
import { syncDirectorySync } from "../../../disk/directory-names.ts";
import { FOLDERS, isKept, kindOf, RESTORE_FOLDER, SECRETS_FILE, SYSTEM_FILE } from "../layout.ts";
import { type ArchiveHeader, BackupError } from "../types.ts";
import { createFactsStore } from "./facts-store.ts";
import { unpackArchive } from "./unpack.ts";

const LOCK_FILE = "platform.lock";
/** Mode of the data directory, equal to that of `start`: other accounts of the machine get no access. */
const DIRECTORY_MODE = 0o700;
/** Whether a file is the lock, or its journal: SQLite keeps one beside the lock while it is held. */
const isLock = (name: string): boolean => name.startsWith(LOCK_FILE);

export interface RestoreSummary {
  dataDirectory: string;
  header: ArchiveHeader;
  fileCount: number;
  contentBytes: number;
  /** false: the server took its secrets from its environment. */
  hasSecrets: boolean;
}

/**
 * Unpacks a backup into an empty or missing data directory. Until everything is verified and on disk it stays in RESTORE_FOLDER,
 * which prevents a server from starting on the directory. After a failure the directory is as it was. Errors: BackupError;
 * another process uses the directory. Rules: SPEC.md.
 */
export async function restoreBackup(options: {
  file: string;
  dataDirectory: string;
  signal: AbortSignal;
}): Promise<RestoreSummary> {
  const file = resolve(options.file);
  const dataDirectory = resolve(options.dataDirectory);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) throw new BackupError(`There is no file ${file}`);
  const place = claimPlace(dataDirectory);
  let isDone = false;
  try {
    const folder = join(dataDirectory, RESTORE_FOLDER, "files");
    mkdirSync(folder, { recursive: true });
    const facts = createFactsStore(join(dataDirectory, RESTORE_FOLDER, "facts.db"));
    try {
      const header = await unpackArchive({ file, folder, facts, signal: options.signal });
      if (!existsSync(join(folder, SYSTEM_FILE))) throw new BackupError(`${file} has no ${SYSTEM_FILE} in it`);
      const totals = facts.totals();
      moveIn(folder, dataDirectory);
      isDone = true;
      return { dataDirectory, header, ...totals, hasSecrets: existsSync(join(dataDirectory, SECRETS_FILE)) };
    } finally {
      facts.close();
    }
  } finally {
    if (isDone) place.open();
    else place.giveBack();
  }
}

export interface Place {
  /** Completes the restore: a server can start on the directory. */
  open(): void;
  /** Removes everything restored, and the directory if it did not exist. */
  giveBack(): void;
}

/**
 * Claims the data directory for a restore. `keepsPartial`: what an interrupted restore has in RESTORE_FOLDER stays, unless it was being
 * moved out of it. Errors: the directory is not empty, or used by another process.
 */
export function claimPlace(
  dataDirectory: string,
  { keepsPartial }: { keepsPartial: boolean } = { keepsPartial: false },
): Place {
  requireEmpty(dataDirectory);
  // The topmost folder that had to be made.
  const made = mkdirSync(dataDirectory, { recursive: true, mode: DIRECTORY_MODE });
  const hadLock = existsSync(join(dataDirectory, LOCK_FILE));
  const lock = lockDirectory(dataDirectory);
  const clear = () => {
    // Files that others have added meanwhile are kept. RESTORE_FOLDER, which marks the restore as interrupted, goes last.
    for (const name of readdirSync(dataDirectory)) {
      if (isOwn(name) && !isLock(name) && name !== RESTORE_FOLDER)
        rmSync(join(dataDirectory, name), { recursive: true });
    }
    rmSync(join(dataDirectory, RESTORE_FOLDER), { recursive: true, force: true });
  };
  try {
    requireEmpty(dataDirectory);
    const isMoved = readdirSync(dataDirectory).some((name) => !isLock(name) && name !== RESTORE_FOLDER);
    if (!keepsPartial || isMoved) clear();
  } catch (cause) {
    lock.release();
    throw cause;
  }
  return {
    open() {
      // Emptied first, so that its removal is a single step, also in a crash.
      const partial = join(dataDirectory, RESTORE_FOLDER);
      for (const name of readdirSync(partial)) rmSync(join(partial, name), { recursive: true });
      rmdirSync(partial);
      syncDirectorySync(dataDirectory);
      lock.release();
    },
    giveBack() {
      clear();
      lock.release();
      if (!hadLock) rmSync(join(dataDirectory, LOCK_FILE), { force: true });
      if (made !== undefined) removeEmpty(dataDirectory, resolve(made));
    },
  };
}

/**
 * Checks that the directory is empty. The remains of an interrupted restore count as empty, as no server can have added to
 * them.
 */
function requireEmpty(dataDirectory: string): void {
  const stats = statSync(dataDirectory, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isDirectory()) throw new BackupError(`${dataDirectory} is not a directory`);
  const names = readdirSync(dataDirectory).filter((name) => !isLock(name));
  const isInterrupted = names.includes(RESTORE_FOLDER);
  const inTheWay = names.filter((name) => !isInterrupted || !isOwn(name));
  if (inTheWay.length === 0) return;
  throw new BackupError(`${dataDirectory} is not empty ("${inTheWay[0]}" is in it): restore into a new directory`);
}

const isOwn = (name: string): boolean => FOLDERS.has(name) || isKept(name) || kindOf(name) === "passing";

/**
 * Renames the files into place; they are on disk already. system.db is last: without it the directory is not a data
 * directory.
 */
export function moveIn(folder: string, dataDirectory: string): void {
  syncTree(folder);
  const names = readdirSync(folder);
  const last = names.filter((name) => name === SYSTEM_FILE);
  for (const name of [...names.filter((one) => one !== SYSTEM_FILE), ...last])
    renameSync(join(folder, name), join(dataDirectory, name));
  syncDirectorySync(dataDirectory);
}

function syncTree(folder: string): void {
  syncDirectorySync(folder);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) syncTree(join(folder, entry.name));
  }
}

/** Removes empty folders from the innermost up to `topmost`. */
function removeEmpty(from: string, topmost: string): void {
  for (let path = from; ; path = resolve(path, "..")) {
    try {
      rmdirSync(path);
    } catch {
      return;
    }
    if (path === topmost) return;
  }
}
