import { constants, Database } from "bun:sqlite";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type AuditEntry, type AuditRow, auditRowsOf } from "../../db/index.ts";
import { LOCK_TIMEOUT_MS, PAGE_LIMIT_MAX } from "./limits.ts";
import { type AuditFilter, type AuditPlace, type AuditQuery, readPage, type ShownEntry, shownEntry } from "./store.ts";

const AUDIT_FILE = "audit.db";
const FOLDERS = ["", "databases", "kv", "vectorize"];

/**
 * Reads the entries of a data directory, newest first, beside a running or a stopped server: the entries that the log has not taken
 * yet, then those of the log. It changes nothing. Errors: those of SQLite, for a damaged file.
 */
export async function* entriesOf(dataDirectory: string, filter: AuditFilter): AsyncGenerator<ShownEntry> {
  // Read before the log, which has every row that is deleted from a file meanwhile.
  const rows = databasesOf(dataDirectory).flatMap(rowsOf);
  const path = join(dataDirectory, AUDIT_FILE);
  using log = existsSync(path) ? openReadOnly(path) : null;
  // Entries that the log takes later are among the rows.
  const last = log?.query<{ id: number | null }, []>("SELECT max(id) AS id FROM batches").get()?.id ?? 0;
  const isTaken = ({ id }: AuditRow): boolean =>
    log !== null && log.query("SELECT 1 FROM batches WHERE batch = ? AND id <= ?").get(id, last) !== null;
  // Written by `FileAudit`.
  const waiting = rows.flatMap((row) => (isTaken(row) ? [] : (JSON.parse(row.entries) as AuditEntry[])));
  for (const entry of waiting.toSorted((a, b) => b.at - a.at)) if (isWanted(entry, filter)) yield shownEntry(entry);
  for (let before: AuditPlace = { batch: last + 1, index: 0 }; log !== null; ) {
    const query: AuditQuery = { ...filter, before, limit: PAGE_LIMIT_MAX };
    const page = await readPage(query, (sql, params) => log.query(sql).values(...params));
    yield* page.entries;
    if (page.next === null) return;
    before = page.next;
  }
}

function openReadOnly(path: string): Database {
  const sqlite = new Database(pathToFileURL(path).href, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  // The server locks a file for the moment in which it opens or closes it.
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return sqlite;
}

/** Reads the rows of a file that the log may not have. */
function rowsOf(path: string): AuditRow[] {
  try {
    using file = openReadOnly(path);
    return auditRowsOf(file);
  } catch (cause) {
    // The log has the entries of an instance before it is deleted. [AL14]
    if (!existsSync(path)) return [];
    throw cause;
  }
}

/** Returns the files whose changes are audited. */
function databasesOf(dataDirectory: string): string[] {
  const folders = FOLDERS.map((folder) => join(dataDirectory, folder));
  const instances = namesIn(join(dataDirectory, "databases"), "directory").map((name) =>
    join(dataDirectory, "databases", name),
  );
  return [...folders, ...instances].flatMap((folder) =>
    namesIn(folder, "file")
      .filter((name) => name.endsWith(".db") && name !== AUDIT_FILE)
      .map((name) => join(folder, name)),
  );
}

function namesIn(folder: string, kind: "file" | "directory"): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => (kind === "file" ? entry.isFile() : entry.isDirectory()))
    .map(({ name }) => name);
}

function isWanted(entry: AuditEntry, { actor, action, target, after }: AuditFilter): boolean {
  const { name, kind, as } = entry.actor;
  const beginsWith = (text: string, wanted: string | null, separator: string): boolean =>
    wanted === null || text === wanted || text.startsWith(wanted + separator);
  return (
    (after === null || entry.at >= after) &&
    (actor === null || [name, kind, as].includes(actor)) &&
    beginsWith(entry.action, action, ".") &&
    beginsWith(entry.target, target, "/")
  );
}
