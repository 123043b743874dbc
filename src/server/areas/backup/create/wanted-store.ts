import { Database } from "bun:sqlite";
import { STORAGE_FOLDERS, STORED_TABLES, type StorageFolder } from "../layout.ts";
import { LOCK_TIMEOUT_MS } from "../limits.ts";
import { openScratch } from "../scratch.ts";

export interface WantedObject {
  folder: StorageFolder;
  fileId: string;
}

/** `taken`: secured. `elsewhere`: not in this data directory. Without a state: not searched yet. */
export type ObjectState = "taken" | "elsewhere";

/** The contents that a snapshot of system.db names, and where they are. */
export interface WantedStore {
  /** Adds the contents that the snapshot names and the archive does not have. */
  collect(snapshotPath: string, factsPath: string): void;
  /** Some of those without a state. */
  next(limit: number): WantedObject[];
  settle(object: WantedObject, state: ObjectState): void;
  /** Removes one that is no longer named. */
  forget(object: WantedObject): void;
  taken(): Iterable<WantedObject>;
  elsewhereCount(): number;
  close(): void;
}

const WANTED = `CREATE TABLE wanted (folder TEXT NOT NULL, fileId TEXT NOT NULL, state TEXT,
  PRIMARY KEY (folder, fileId)) STRICT, WITHOUT ROWID;
  CREATE INDEX wanted_state ON wanted (state)`;

export function createWantedStore(path: string): WantedStore {
  const sqlite = openScratch(path, WANTED);
  const settle = sqlite.prepare("UPDATE wanted SET state = ?3 WHERE folder = ?1 AND fileId = ?2");
  const forget = sqlite.prepare("DELETE FROM wanted WHERE folder = ? AND fileId = ?");
  const next = sqlite.prepare<WantedObject, [number]>("SELECT folder, fileId FROM wanted WHERE state IS NULL LIMIT ?");
  const taken = sqlite.prepare<WantedObject, []>("SELECT folder, fileId FROM wanted WHERE state = 'taken'");
  const elsewhere = sqlite.prepare<{ count: number }, []>(
    "SELECT count(*) AS count FROM wanted WHERE state = 'elsewhere'",
  );
  return {
    collect(snapshotPath, factsPath) {
      sqlite.run("ATTACH ? AS snapshot", [snapshotPath]);
      sqlite.run("ATTACH ? AS facts", [factsPath]);
      for (const folder of STORAGE_FOLDERS) {
        if (!hasTable(sqlite, STORED_TABLES[folder])) continue;
        sqlite.run(
          `INSERT OR IGNORE INTO wanted (folder, fileId) SELECT '${folder}', fileId FROM snapshot.${STORED_TABLES[folder]}
           WHERE 'storage/${folder}/' || substr(fileId, -2) || '/' || fileId NOT IN (SELECT path FROM facts.file)`,
        );
      }
      sqlite.run("DETACH snapshot");
      sqlite.run("DETACH facts");
    },
    next: (limit) => next.all(limit),
    settle: ({ folder, fileId }, state) => void settle.run(folder, fileId, state),
    forget: ({ folder, fileId }) => void forget.run(folder, fileId),
    taken: () => taken.iterate(),
    elsewhereCount: () => elsewhere.get()?.count ?? 0,
    close: () => sqlite.close(),
  };
}

/** A data directory whose first start was interrupted may not have the tables yet. */
function hasTable(sqlite: Database, table: string): boolean {
  return sqlite.query("SELECT 1 FROM snapshot.sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== null;
}

/** Queries the current system.db whether it names a content. */
export interface LiveRecords {
  isNamed(object: WantedObject): boolean;
  close(): void;
}

export function openLiveRecords(systemPath: string): LiveRecords {
  const sqlite = new Database(systemPath, { readonly: true });
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return {
    isNamed: ({ folder, fileId }) =>
      sqlite.query(`SELECT 1 FROM ${STORED_TABLES[folder]} WHERE fileId = ?`).get(fileId) !== null,
    close: () => sqlite.close(),
  };
}
