/** Entry point of the library. SQLite would derive it from the file name, which a build changes. */
const ENTRY_POINT = "sqlite3_vec_init";

/** Loads sqlite-vec into a connection. The types of node:sqlite lack the entry point, which Bun takes. */
export function loadVectorExtension(
  sqlite: { loadExtension(path: string, entryPoint?: string): void },
  path: string,
): void {
  sqlite.loadExtension(path, ENTRY_POINT);
}
