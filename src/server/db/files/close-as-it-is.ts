import { Database } from "bun:sqlite";

/**
 * Closes without moving the WAL: moving it would make a write permanent that was answered with a failure. SQLite moves the
 * WAL when the last connection is closed, unless that connection is read-only.
 */
export function closeAsItIs(path: string, sqlite: Database): void {
  let last: Database | null = null;
  try {
    last = new Database(path, { readonly: true });
    last.query("SELECT count(*) FROM sqlite_schema").get();
  } catch {
    // For example, no descriptor is left. Then the WAL is moved, although the write was answered with a failure.
  }
  sqlite.close();
  last?.close();
}
