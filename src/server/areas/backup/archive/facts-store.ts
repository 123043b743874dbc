import type { FileFacts } from "../types.ts";
import { openScratch } from "../work-folder.ts";

/**
 * Facts of the files written to or read from an archive, in a database of their own, so that memory does not grow with
 * their number.
 */
export type FactsStore = ReturnType<typeof createFactsStore>;

const FACTS = `CREATE TABLE file (path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
  confirmed INTEGER NOT NULL DEFAULT 0) STRICT`;

export function createFactsStore(path: string) {
  const sqlite = openScratch(path, FACTS);
  const statements = {
    add: sqlite.prepare("INSERT INTO file (path, size, sha256) VALUES (?, ?, ?)"),
    all: sqlite.prepare<FileFacts, []>("SELECT path, size, sha256 FROM file ORDER BY rowid"),
    totals: sqlite.prepare<{ fileCount: number; contentBytes: number }, []>(
      "SELECT count(*) AS fileCount, coalesce(sum(size), 0) AS contentBytes FROM file",
    ),
    confirm: sqlite.prepare(
      "UPDATE file SET confirmed = 1 WHERE path = ? AND size = ? AND sha256 = ? AND confirmed = 0",
    ),
    unconfirmed: sqlite.prepare<{ path: string }, []>(
      "SELECT path FROM file WHERE confirmed = 0 ORDER BY rowid LIMIT 1",
    ),
  };
  return {
    add: (facts: FileFacts): void => void statements.add.run(facts.path, facts.size, facts.sha256),
    /** Iterates over the facts in the order in which they were added. */
    all: (): Iterable<FileFacts> => statements.all.iterate(),
    totals: (): { fileCount: number; contentBytes: number } =>
      statements.totals.get() ?? { fileCount: 0, contentBytes: 0 },
    /** Confirms a file; false when no file has exactly these facts, or it has been confirmed before. */
    confirm: (facts: FileFacts): boolean => statements.confirm.run(facts.path, facts.size, facts.sha256).changes === 1,
    /** Returns the path of a file that has not been confirmed; null when all have. */
    unconfirmed: (): string | null => statements.unconfirmed.get()?.path ?? null,
    close: (): void => sqlite.close(),
  };
}
