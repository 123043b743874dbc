import { Database } from "bun:sqlite";
import { join } from "node:path";
import { LOCK_TIMEOUT_MS } from "../../areas/backup/limits.ts";
import { openUnchanged } from "../../db/index.ts";
import type { Patient } from "./finding.ts";

/** A connection that changes nothing. Beside a running server it locks as others do, as the file may change meanwhile. */
export function openDatabase({ dataDirectory, isRunning }: Patient, path: string): Database {
  const file = join(dataDirectory, path);
  if (!isRunning) return openUnchanged(file);
  const sqlite = new Database(file, { readonly: true });
  // The server locks a file for the moment in which it opens or closes it.
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return sqlite;
}
