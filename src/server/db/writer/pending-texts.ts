import type { Database } from "bun:sqlite";

/** The table of records whose texts are not yet indexed. Deleting a row of it indexes the record (see `ftsTriggersSql`). */
export const PENDING_TEXTS = "_platform_pending_texts";

/** Runs before the record is written. */
export const NOTE_PENDING_TEXT = `INSERT OR IGNORE INTO "${PENDING_TEXTS}" ("table", "id") VALUES (?, ?)`;

export function hasPendingTexts(sqlite: Database): boolean {
  const known = sqlite.prepare("SELECT 1 FROM sqlite_master WHERE name = ?");
  const isThere = known.get(PENDING_TEXTS) !== null;
  known.finalize();
  if (!isThere) return false;
  const first = sqlite.prepare(`SELECT 1 FROM "${PENDING_TEXTS}" LIMIT 1`);
  const isAny = first.get() !== null;
  first.finalize();
  return isAny;
}
