import { constants, Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { quoteIdentifier } from "./identifiers.ts";

/**
 * Opens a connection that changes neither a database nor the files beside it. Without a WAL, the file is complete by itself:
 * `immutable` reads it without a lock and without SQLite's additional files. With a WAL, another process has the file open, or a
 * crash left the WAL: a read-only connection changes neither file. Errors: those of SQLite.
 */
export function openUnchanged(path: string): Database {
  if (hasWal(path)) return new Database(path, { readonly: true });
  return new Database(
    `${pathToFileURL(path).href}?immutable=1`,
    constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI,
  );
}

/** Reports whether the file has a WAL with content; an empty one counts as none. */
export const hasWal = (path: string): boolean => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;

/**
 * Closes without a checkpoint, which would make a write permanent that was answered with a failure. SQLite checkpoints when the
 * last connection is closed, unless that connection is read-only.
 */
export function closeAsItIs(path: string, sqlite: Database): void {
  let last: Database | null = null;
  try {
    last = new Database(path, { readonly: true });
    last.query("SELECT count(*) FROM sqlite_schema").get();
  } catch {
    // For example, no descriptor is left. SQLite checkpoints the WAL then, although the write was answered with a failure.
  }
  sqlite.close();
  last?.close();
}

/**
 * Reports whether a user table in this file has a row. The file must not be open. A file that cannot be read counts as having rows.
 */
export function holdsRecords(path: string): boolean {
  try {
    using sqlite = openUnchanged(path);
    const tables = sqlite.query<{ name: string }, []>(TABLES).all();
    return tables.some(({ name }) => sqlite.query(`SELECT 1 FROM ${quoteIdentifier(name)} LIMIT 1`).get() !== null);
  } catch {
    return true;
  }
}

/** All tables except those of SQLite, of the server, and of search indexes, which are virtual or shadows of virtual ones. */
const TABLES = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_platform%' ESCAPE '\\'`;
