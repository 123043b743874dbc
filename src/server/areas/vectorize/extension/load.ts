import type { Database } from "bun:sqlite";

/** SQLite would derive it from the file name, which a build changes. */
const ENTRY_POINT = "sqlite3_vec_init";

export function loadVectorExtension(sqlite: Database, extensionPath: string): void {
  sqlite.loadExtension(extensionPath, ENTRY_POINT);
}
