import { constants } from "node:fs";
import { copyFile, link, mkdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ArchiveWriter } from "../archive/archive.ts";
import type { FactsStore } from "../archive/facts-store.ts";
import { objectPath, SYSTEM_FILE } from "../layout.ts";
import { OBJECT_ROUNDS_MAX } from "../limits.ts";
import { isMissing } from "../scan.ts";
import { BackupError } from "../types.ts";
import type { WorkFolder } from "../work-folder.ts";
import { snapshotDatabase } from "./snapshot.ts";
import { createWantedStore, openLiveRecords, type WantedObject, type WantedStore } from "./wanted-store.ts";

/** Contents searched between two checks of the signal. */
const STEP = 500;

interface Deps {
  dataDirectory: string;
  work: WorkFolder;
  archive: ArchiveWriter;
  facts: FactsStore;
  factsPath: string;
  signal: AbortSignal;
}

/**
 * Adds system.db, and the contents that it names and the archive does not have yet because they were stored while others were
 * being copied. Contents never change and are removed only after their record. A missing content has therefore lost its record
 * since the snapshot (then another snapshot is taken), or is stored elsewhere. Resolves to the number of the latter.
 */
export async function addSystem(deps: Deps): Promise<number> {
  const { dataDirectory, work, archive, facts, factsPath, signal } = deps;
  const systemPath = join(dataDirectory, SYSTEM_FILE);
  const snapshotPath = work.pathOf("system.db");
  const wanted = createWantedStore(work.pathOf("wanted.db"));
  try {
    for (let round = 1; ; round++) {
      signal.throwIfAborted();
      await snapshotDatabase(systemPath, snapshotPath);
      wanted.collect(snapshotPath, factsPath);
      if (await takeAll({ ...deps, wanted, systemPath })) break;
      if (round === OBJECT_ROUNDS_MAX) {
        throw new BackupError(
          "Stored files are replaced faster than they can be copied; try again when the server is less busy",
        );
      }
    }
    facts.add(await archive.addFile(SYSTEM_FILE, snapshotPath));
    for (const object of wanted.taken()) {
      signal.throwIfAborted();
      const path = objectPath(object.folder, object.fileId);
      facts.add(await archive.addFile(path, work.pathOf(path)));
      await unlink(work.pathOf(path));
    }
    return wanted.elsewhereCount();
  } finally {
    wanted.close();
  }
}

/** false: a content that the snapshot names and its record have been removed. */
async function takeAll(deps: Deps & { wanted: WantedStore; systemPath: string }): Promise<boolean> {
  const { dataDirectory, work, wanted, systemPath, signal } = deps;
  const live = openLiveRecords(systemPath);
  let isWhole = true;
  try {
    for (let some = wanted.next(STEP); some.length > 0; some = wanted.next(STEP)) {
      signal.throwIfAborted();
      for (const object of some) {
        const path = objectPath(object.folder, object.fileId);
        if (await hold(join(dataDirectory, path), work.pathOf(path))) wanted.settle(object, "taken");
        else if (live.isNamed(object)) wanted.settle(object, "elsewhere");
        else isWhole = forget(wanted, object);
      }
    }
    return isWhole;
  } finally {
    live.close();
  }
}

function forget(wanted: WantedStore, object: WantedObject): false {
  wanted.forget(object);
  return false;
}

/** Keeps a content by a hard link, which survives its removal, or by a copy if the work folder is on another disk. */
async function hold(from: string, to: string): Promise<boolean> {
  await mkdir(dirname(to), { recursive: true });
  try {
    await link(from, to);
  } catch (cause) {
    if (isMissing(cause)) return false;
    try {
      await copyFile(from, to, constants.COPYFILE_FICLONE);
    } catch (copyCause) {
      if (isMissing(copyCause)) return false;
      throw copyCause;
    }
  }
  return true;
}
