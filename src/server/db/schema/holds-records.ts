import { quoteIdentifier } from "../identifiers.ts";
import { openUnchanged } from "../open-unchanged.ts";

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
