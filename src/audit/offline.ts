import { constants, Database } from "bun:sqlite";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type AuditEntry, auditRowsOf } from "../db/index.ts";
import { PAGE_LIMIT_MAX } from "./limits.ts";
import { type AuditFilter, type AuditPlace, type AuditQuery, readPage, type ShownEntry, shownEntry } from "./store.ts";

const AUDIT_FILE = "audit.db";
const FOLDERS = ["", "databases", "kv", "vectorize"];

/**
 * The entries of a data directory, newest first, beside a running or a stopped server: those that the log has, after those
 * that it has not taken yet. It changes nothing. Errors: those of SQLite, for a damaged file.
 */
export async function* entriesOf(dataDirectory: string, filter: AuditFilter): AsyncGenerator<ShownEntry> {
  const path = join(dataDirectory, AUDIT_FILE);
  using log = existsSync(path) ? openReadOnly(path) : null;
  const isTaken = (id: string): boolean =>
    log !== null && log.query("SELECT 1 FROM batches WHERE batch = ?").get(id) !== null;
  const waiting = databasesOf(dataDirectory).flatMap((file) => waitingIn(file, isTaken));
  for (const entry of waiting.toSorted((a, b) => b.at - a.at)) if (isWanted(entry, filter)) yield shownEntry(entry);
  for (let before: AuditPlace | null = null; log !== null; ) {
    const query: AuditQuery = { ...filter, before, limit: PAGE_LIMIT_MAX };
    const page = await readPage(query, (sql, params) => log.query(sql).values(...params));
    yield* page.entries;
    if (page.next === null) return;
    before = page.next;
  }
}

const openReadOnly = (path: string): Database =>
  new Database(pathToFileURL(path).href, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);

function waitingIn(path: string, isTaken: (id: string) => boolean): AuditEntry[] {
  using file = openReadOnly(path);
  // Written by `FileAudit`.
  return auditRowsOf(file).flatMap(({ id, entries }) => (isTaken(id) ? [] : (JSON.parse(entries) as AuditEntry[])));
}

/** The files whose changes are audited. */
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
