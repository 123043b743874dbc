import { Database } from "bun:sqlite";
import { quoteIdentifier } from "../identifiers.ts";

/** Whether a table of the users' in this file, which is not open yet, has a row. One that cannot be read may have some. */
export function holdsRecords(path: string): boolean {
  try {
    using sqlite = new Database(path, { readwrite: true, create: false });
    const tables = sqlite.query<{ name: string }, []>(TABLES).all();
    return tables.some(({ name }) => sqlite.query(`SELECT 1 FROM ${quoteIdentifier(name)} LIMIT 1`).get() !== null);
  } catch {
    return true;
  }
}

/** Not SQLite's own, not ours, and not those in which a search index lies. */
const TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
  AND name NOT LIKE '\\_platform%' ESCAPE '\\' AND name NOT LIKE '%\\_fts%' ESCAPE '\\'`;
