import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { LOCK_TIMEOUT_MS } from "../../areas/backup/limits.ts";
import { openUnchanged } from "../../db/index.ts";
import { PROBLEMS_SHOWN_MAX } from "../limits.ts";

/** The result of a check: figures, and the problems in words. */
export type Finding = { ok: boolean; problems: string[] } & { [figure: string]: JsonValue };

export interface Patient {
  dataDirectory: string;
  /** Whether a server is using the directory. */
  isRunning: boolean;
}

/** Builds a finding with a readable number of problems. */
export function finding(problems: readonly string[], figures: Record<string, JsonValue> = {}): Finding {
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX);
  if (problems.length > shown.length) shown.push(`and ${problems.length - shown.length} more`);
  return { ...figures, ok: problems.length === 0, problems: shown };
}

/** Opens a read-only connection. Beside a running server it takes SQLite's locks, as the file may change meanwhile. */
export function openDatabase({ dataDirectory, isRunning }: Patient, path: string): Database {
  const file = join(dataDirectory, path);
  if (!isRunning) return openUnchanged(file);
  const sqlite = new Database(file, { readonly: true });
  // The server locks a file briefly while it opens or closes it.
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return sqlite;
}
