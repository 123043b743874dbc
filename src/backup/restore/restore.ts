import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { lockDirectory } from "../../db/index.ts";
import { syncDirectorySync } from "../../disk/directory-names.ts";
import { createFactsStore } from "../archive/facts-store.ts";
import { FOLDERS, isKept, kindOf, RESTORE_FOLDER, SECRETS_FILE, SYSTEM_FILE } from "../layout.ts";
import { type ArchiveHeader, BackupError } from "../types.ts";
import { unpackArchive } from "./unpack.ts";

const LOCK_FILE = "platform.lock";
/** SQLite keeps a journal beside the lock while somebody has it. */
const isLock = (name: string): boolean => name.startsWith(LOCK_FILE);

export interface RestoreSummary {
  dataDirectory: string;
  header: ArchiveHeader;
  fileCount: number;
  contentBytes: number;
  /** false: the server had its secrets from its environment. */
  hasSecrets: boolean;
}

/**
 * Unpacks a backup into a data directory that is empty or not there yet. Until all of it is compared and on disk it lies in
 * RESTORE_FOLDER, and no server starts on the directory; when anything fails the directory is left as it was. Errors:
 * BackupError; another process has the directory. Rules: SPEC.md.
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

interface Place {
  /** Ends the restore: from now on a server starts on it. */
  open(): void;
  /** Removes all that came, and the directory if it was not there. */
  giveBack(): void;
}

/** Errors: there is something in the directory, or another process has it. */
function claimPlace(dataDirectory: string): Place {
  requireEmpty(dataDirectory);
  // The topmost folder that had to be made.
  const made = mkdirSync(dataDirectory, { recursive: true });
  const hadLock = existsSync(join(dataDirectory, LOCK_FILE));
  const lock = lockDirectory(dataDirectory);
  const clear = () => {
    // What somebody else has put there meanwhile is not ours to remove; the folder that says "interrupted" goes last.
    for (const name of readdirSync(dataDirectory)) {
      if (isOwn(name) && !isLock(name) && name !== RESTORE_FOLDER)
        rmSync(join(dataDirectory, name), { recursive: true });
    }
    rmSync(join(dataDirectory, RESTORE_FOLDER), { recursive: true, force: true });
  };
  try {
    requireEmpty(dataDirectory);
    clear();
  } catch (cause) {
    lock.release();
    throw cause;
  }
  return {
    open() {
      // Empty before it goes: it is there, or it is not, also after a crash.
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

/** What an interrupted restore has left counts as nothing: no server can have added to it. */
function requireEmpty(dataDirectory: string): void {
  const stats = statSync(dataDirectory, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isDirectory()) throw new BackupError(`${dataDirectory} is no directory`);
  const names = readdirSync(dataDirectory).filter((name) => !isLock(name));
  const isInterrupted = names.includes(RESTORE_FOLDER);
  const inTheWay = names.filter((name) => !isInterrupted || !isOwn(name));
  if (inTheWay.length === 0) return;
  throw new BackupError(`${dataDirectory} is not empty ("${inTheWay[0]}" is in it): restore into a new directory`);
}

const isOwn = (name: string): boolean => FOLDERS.has(name) || isKept(name) || kindOf(name) === "passing";

/** Renames: the files are on disk already. system.db comes last, so that nothing looks like a server before. */
function moveIn(folder: string, dataDirectory: string): void {
  syncTree(folder);
  const names = readdirSync(folder).filter((name) => name !== SYSTEM_FILE);
  for (const name of [...names, SYSTEM_FILE]) renameSync(join(folder, name), join(dataDirectory, name));
  syncDirectorySync(dataDirectory);
}

function syncTree(folder: string): void {
  syncDirectorySync(folder);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) syncTree(join(folder, entry.name));
  }
}

/** From the innermost up to the topmost that was made; one with something in it stays. */
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
