import { Database } from "bun:sqlite";

/** A database for the time of one backup or restore. Its folder is removed afterwards, so nothing of it is synced. */
export function openScratch(path: string, schema: string): Database {
  const sqlite = new Database(path, { create: true, readwrite: true });
  sqlite.run("PRAGMA journal_mode = OFF");
  sqlite.run("PRAGMA synchronous = OFF");
  sqlite.run(schema);
  return sqlite;
}
