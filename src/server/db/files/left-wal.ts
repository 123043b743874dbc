import type { Database } from "bun:sqlite";
import fs from "node:fs";
import { isDiskFull } from "../../../kernel/errors.ts";
import { FrameReader } from "../capture/frame-reader.ts";
import type { FileCapture, LeftFacts } from "../capture/types.ts";
import { isMissingTable } from "../missing-table.ts";
import { COMMIT_TABLE } from "../writer/commit-gate.ts";

interface LeftWalOptions {
  /** Takes the commits in it; null: nothing does. */
  capture: FileCapture | null;
  onFailure: (path: string, cause: unknown) => void;
}

/**
 * Checkpoints a WAL that a crash or a failed sync has left. Its readable content may not be on the disk, and later syncs would not
 * write it; a checkpoint writes and syncs it again. Errors: the sync fails.
 */
export function moveLeftWal(sqlite: Database, path: string, { capture, onFailure }: LeftWalOptions): void {
  try {
    if (capture !== null) takeLeftCommits(sqlite, path, capture);
  } catch (cause) {
    // The file is compared as a whole then.
    onFailure(path, cause);
  }
  try {
    sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
  } catch (error) {
    // Without disk space the WAL stays, which is safe: SQLite reads from it.
    if (!isDiskFull(error)) throw error;
  }
}

/** Passes on the commits in it, each with its number, nonce, time and place. A file without commit row has none. */
function takeLeftCommits(sqlite: Database, path: string, capture: FileCapture): void {
  const facts = factsOf(sqlite);
  if (facts === null || facts.number === 0) return;
  using state = sqlite.prepare<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)");
  const frameCount = () => Math.max(0, state.get()?.log ?? 0);
  // Of the WAL only: closing a descriptor of the database file would drop SQLite's locks.
  const descriptor = fs.openSync(`${path}-wal`, "r");
  try {
    new FrameReader({ descriptor, frameCount, take: (frames) => capture.left(facts, frames) }).read();
  } finally {
    fs.closeSync(descriptor);
  }
}

function factsOf(sqlite: Database): LeftFacts | null {
  try {
    using row = sqlite.prepare<LeftFacts, [string]>(
      `SELECT "file", "number", "nonce", (SELECT "rootpage" FROM "sqlite_schema" WHERE "name" = ?) AS "page" FROM "${COMMIT_TABLE}"`,
    );
    return row.get(COMMIT_TABLE);
  } catch (error) {
    if (isMissingTable(error)) return null;
    throw error;
  }
}
