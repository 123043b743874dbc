import { Database } from "bun:sqlite";
import { closeSync, fdatasyncSync, openSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { STORAGE_FOLDERS, type StorageFolder } from "./layout.ts";
import { LOCK_TIMEOUT_MS, STEP_PAGES } from "./limits.ts";
import type { FileFacts } from "./types.ts";

const SQLITE_FULL = 13;

/**
 * A consistent copy of a database that another process may be writing to, page by page: extensions of its tables are not
 * needed, and rowids stay. Readers and writers go on; only the WAL cannot start over meanwhile. What has been copied goes
 * to the disk little by little: one large sync at the end would keep the server's own waiting.
 */
export async function snapshotDatabase(path: string, copyPath: string): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT_MS });
  let copy: number | null = null;
  try {
    // All steps read what was there at this moment.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_schema").get();
    const progress = () => {
      copy ??= openSync(copyPath, "r+");
      fdatasyncSync(copy);
    };
    await backup(source, copyPath, { rate: STEP_PAGES, progress });
  } catch (cause) {
    throw withCode(cause);
  } finally {
    if (copy !== null) closeSync(copy);
    source.close();
  }
}

/** node:sqlite has SQLite's code as a number, where everybody else has a name. */
function withCode(cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause) || cause.errcode !== SQLITE_FULL) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: "SQLITE_FULL" });
}

/** What has gone into an archive, or come out of it: a file beside it, so that a million of them need no memory. */
export interface FactsStore {
  add(facts: FileFacts): void;
  /** In the order of arrival. */
  all(): Iterable<FileFacts>;
  totals(): { fileCount: number; contentBytes: number };
  /** false: there is no file with exactly these facts, or it has been confirmed before. */
  confirm(facts: FileFacts): boolean;
  /** A file that nobody has confirmed; null when all are. */
  unconfirmed(): string | null;
  close(): void;
}

const FACTS = `CREATE TABLE file (path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
  confirmed INTEGER NOT NULL DEFAULT 0) STRICT`;

export function createFactsStore(path: string): FactsStore {
  const sqlite = openScratch(path, FACTS);
  const statements = {
    add: sqlite.prepare("INSERT INTO file (path, size, sha256) VALUES (?, ?, ?)"),
    all: sqlite.prepare<FileFacts, []>("SELECT path, size, sha256 FROM file ORDER BY rowid"),
    totals: sqlite.prepare<{ fileCount: number; contentBytes: number }, []>(
      "SELECT count(*) AS fileCount, coalesce(sum(size), 0) AS contentBytes FROM file",
    ),
    confirm: sqlite.prepare(
      "UPDATE file SET confirmed = 1 WHERE path = ? AND size = ? AND sha256 = ? AND confirmed = 0",
    ),
    unconfirmed: sqlite.prepare<{ path: string }, []>(
      "SELECT path FROM file WHERE confirmed = 0 ORDER BY rowid LIMIT 1",
    ),
  };
  return {
    add: (facts) => void statements.add.run(facts.path, facts.size, facts.sha256),
    all: () => statements.all.iterate(),
    totals: () => statements.totals.get() ?? { fileCount: 0, contentBytes: 0 },
    confirm: (facts) => statements.confirm.run(facts.path, facts.size, facts.sha256).changes === 1,
    unconfirmed: () => statements.unconfirmed.get()?.path ?? null,
    close: () => sqlite.close(),
  };
}

export interface WantedObject {
  folder: StorageFolder;
  fileId: string;
}

/** `taken`: at hand. `elsewhere`: not in this data directory. Without a state: still to be looked for. */
export type ObjectState = "taken" | "elsewhere";

/** The contents that a snapshot of the server's own file names, and where they are. */
export interface WantedStore {
  /** Notes what the snapshot names and the archive has not. */
  collect(snapshotPath: string, factsPath: string): void;
  /** Some of those that have no state yet. */
  next(limit: number): WantedObject[];
  settle(object: WantedObject, state: ObjectState): void;
  /** It is named no longer. */
  forget(object: WantedObject): void;
  taken(): Iterable<WantedObject>;
  elsewhereCount(): number;
  close(): void;
}

const WANTED = `CREATE TABLE wanted (folder TEXT NOT NULL, fileId TEXT NOT NULL, state TEXT,
  PRIMARY KEY (folder, fileId)) STRICT, WITHOUT ROWID;
  CREATE INDEX wanted_state ON wanted (state)`;
const TABLES: Readonly<Record<StorageFolder, string>> = { objects: "storage_objects", parts: "storage_parts" };

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
        if (!hasTable(sqlite, TABLES[folder])) continue;
        sqlite.run(
          `INSERT OR IGNORE INTO wanted (folder, fileId) SELECT '${folder}', fileId FROM snapshot.${TABLES[folder]}
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

/** A data directory that no server has finished making has no such tables yet. */
function hasTable(sqlite: Database, table: string): boolean {
  return sqlite.query("SELECT 1 FROM snapshot.sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== null;
}

/** Asks the server's own file, as it is now, whether it names a content. */
export interface LiveRecords {
  isNamed(object: WantedObject): boolean;
  close(): void;
}

export function openLiveRecords(systemPath: string): LiveRecords {
  const sqlite = new Database(systemPath, { readonly: true });
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return {
    isNamed: ({ folder, fileId }) =>
      sqlite.query(`SELECT 1 FROM ${TABLES[folder]} WHERE fileId = ?`).get(fileId) !== null,
    close: () => sqlite.close(),
  };
}

/** It goes with its folder: nothing of it has to survive anything. */
function openScratch(path: string, schema: string): Database {
  const sqlite = new Database(path, { create: true, readwrite: true });
  sqlite.run("PRAGMA journal_mode = OFF");
  sqlite.run("PRAGMA synchronous = OFF");
  sqlite.run(schema);
  return sqlite;
}
