import type { Stats } from "node:fs";
import { opendir, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { isMissing } from "../../../kernel/errors.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import { syncDirectory } from "../../disk/directory-names.ts";

const ENDING = ".db";
export interface InstanceFacts {
  id: string;
  /** Size on disk, including the WAL. */
  bytes: number;
  /** Creation time of the file: a restored backup has the time of the restore. */
  createdAt: string;
  /** Time of the last write; it may be later by the time that the file stayed open after it. */
  writtenAt: string;
}

export interface InstanceQuery {
  /** Prefix of the ids. */
  prefix: string;
  limit: number;
  /** Cursor: ids after this one. */
  after: string;
}

/** Returns the first ids after `after`, in order, and whether there are more. Reads the names of a directory, and no file. */
export async function listInstances(
  directory: string,
  { prefix, limit, after }: InstanceQuery,
): Promise<{ ids: string[]; hasMore: boolean }> {
  let ids: string[] = [];
  // Only the first ids are kept, however many there are.
  const keepFirst = (): void => {
    ids = ids.sort().slice(0, limit + 1);
  };
  for await (const name of namesIn(directory)) {
    const id = name.slice(0, -ENDING.length);
    if (!name.endsWith(ENDING) || !id.startsWith(prefix) || id <= after) continue;
    ids.push(id);
    if (ids.length > 4 * (limit + 1)) keepFirst();
  }
  keepFirst();
  const hasMore = ids.length > limit;
  return { ids: ids.slice(0, limit), hasMore };
}

async function* namesIn(directory: string): AsyncGenerator<string> {
  try {
    for await (const entry of await opendir(directory, { bufferSize: 256 })) if (entry.isFile()) yield entry.name;
  } catch (cause) {
    // The directory is missing until the first instance is created.
    if (!isMissing(cause)) throw cause;
  }
}

/** Returns the facts of one instance; null: it does not exist. */
export async function instanceFacts(directory: string, id: string): Promise<InstanceFacts | null> {
  const path = join(directory, id + ENDING);
  const [file, wal] = await Promise.all([statOf(path), statOf(`${path}-wal`)]);
  if (file === null) return null;
  // Opening a file creates an empty WAL.
  const walBytes = wal?.size ?? 0;
  const writtenMs = Math.max(file.mtimeMs, wal !== null && walBytes > 0 ? wal.mtimeMs : 0);
  // Some file systems do not store the time of creation.
  const createdMs = file.birthtimeMs > 0 ? Math.min(file.birthtimeMs, writtenMs) : file.ctimeMs;
  return { id, bytes: file.size + walBytes, createdAt: isoTime(createdMs), writtenAt: isoTime(writtenMs) };
}

async function statOf(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw cause;
  }
}

/** Reports whether the file has exactly this name, as a file system that ignores case may find another. */
export async function isOwnName(path: string): Promise<boolean> {
  try {
    return basename(await realpath(path)) === basename(path);
  } catch (cause) {
    if (isMissing(cause)) return false;
    throw cause;
  }
}

/**
 * Removes a closed database, durably. The WAL goes first: a WAL that was left behind would become part of the next file of
 * that name.
 */
export async function removeDatabase(path: string): Promise<void> {
  // Copies from upgrades go first, also one that a crash left unfinished: nothing of a deleted instance may stay. [DB300]
  const copies = tablesLayout.steps.flatMap((_, version) => [`.v${version}`, `.v${version}.new`]);
  for (const suffix of [...copies, "-wal", "-shm", ""]) await rm(path + suffix, { force: true });
  await syncDirectory(dirname(path));
}
