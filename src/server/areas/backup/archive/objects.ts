import { Database } from "bun:sqlite";
import { constants } from "node:fs";
import { copyFile, link, mkdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMissing } from "../../../../kernel/errors.ts";
import { objectPath, STORAGE_FOLDERS, STORED_TABLES, type StorageFolder, SYSTEM_FILE } from "../layout.ts";
import { LOCK_TIMEOUT_MS, OBJECT_ROUNDS_MAX } from "../limits.ts";
import { BackupError } from "../types.ts";
import { openScratch, type WorkFolder } from "../work-folder.ts";
import type { ArchiveWriter } from "./archive.ts";
import type { FactsStore } from "./facts-store.ts";
import { snapshotDatabase } from "./snapshot.ts";

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

/** Secures all wanted contents; false when a content that the snapshot names and its record have been removed. */
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

/** Secures a content by a hard link, which survives its removal, or by a copy if the work folder is on another disk. */
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

export interface WantedObject {
  folder: StorageFolder;
  fileId: string;
}

/** `taken`: secured. `elsewhere`: not in this data directory. Without a state: not searched yet. */
export type ObjectState = "taken" | "elsewhere";

/** Records the contents that a snapshot of system.db names, and where they are. */
export type WantedStore = ReturnType<typeof createWantedStore>;

const WANTED = `CREATE TABLE wanted (folder TEXT NOT NULL, fileId TEXT NOT NULL, state TEXT,
  PRIMARY KEY (folder, fileId)) STRICT, WITHOUT ROWID;
  CREATE INDEX wanted_state ON wanted (state)`;

export function createWantedStore(path: string) {
  const sqlite = openScratch(path, WANTED);
  const settle = sqlite.prepare("UPDATE wanted SET state = ?3 WHERE folder = ?1 AND fileId = ?2");
  const forget = sqlite.prepare("DELETE FROM wanted WHERE folder = ? AND fileId = ?");
  const next = sqlite.prepare<WantedObject, [number]>("SELECT folder, fileId FROM wanted WHERE state IS NULL LIMIT ?");
  const taken = sqlite.prepare<WantedObject, []>("SELECT folder, fileId FROM wanted WHERE state = 'taken'");
  const elsewhere = sqlite.prepare<{ count: number }, []>(
    "SELECT count(*) AS count FROM wanted WHERE state = 'elsewhere'",
  );
  return {
    /** Adds the contents that the snapshot names and the archive does not have. */
    collect(snapshotPath: string, factsPath: string): void {
      sqlite.run("ATTACH ? AS snapshot", [snapshotPath]);
      sqlite.run("ATTACH ? AS facts", [factsPath]);
      for (const folder of STORAGE_FOLDERS) {
        for (const table of STORED_TABLES[folder]) {
          if (!hasTable(sqlite, table)) continue;
          sqlite.run(
            `INSERT OR IGNORE INTO wanted (folder, fileId) SELECT '${folder}', fileId FROM snapshot.${table}
             WHERE 'storage/${folder}/' || substr(fileId, -2) || '/' || fileId NOT IN (SELECT path FROM facts.file)`,
          );
        }
      }
      sqlite.run("DETACH snapshot");
      sqlite.run("DETACH facts");
    },
    /** Returns some contents without a state, at most `limit`. */
    next: (limit: number): WantedObject[] => next.all(limit),
    settle: ({ folder, fileId }: WantedObject, state: ObjectState): void => void settle.run(folder, fileId, state),
    /** Removes a content that is no longer named. */
    forget: ({ folder, fileId }: WantedObject): void => void forget.run(folder, fileId),
    taken: (): Iterable<WantedObject> => taken.iterate(),
    elsewhereCount: (): number => elsewhere.get()?.count ?? 0,
    close: (): void => sqlite.close(),
  };
}

/** Whether the database has the table. A data directory whose first start was interrupted may not have the tables yet. */
function hasTable(sqlite: Database, table: string): boolean {
  return sqlite.query("SELECT 1 FROM snapshot.sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== null;
}

/** Queries the current system.db whether it names a content. */
export function openLiveRecords(systemPath: string) {
  const sqlite = new Database(systemPath, { readonly: true });
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return {
    isNamed: ({ folder, fileId }: WantedObject): boolean =>
      STORED_TABLES[folder].some(
        (table) => sqlite.query(`SELECT 1 FROM ${table} WHERE fileId = ?`).get(fileId) !== null,
      ),
    close: (): void => sqlite.close(),
  };
}
