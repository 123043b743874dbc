import { existsSync } from "node:fs";
import { join } from "node:path";
import { scanFiles } from "../../layout.ts";
import type { PageHashes } from "../format/pages.ts";
import { hashesOf } from "../ship/scan.ts";
import { takeSnapshot } from "../ship/snapshot.ts";

const ENDING = ".db";
const SNAPSHOTS_MAX = 5;

/** The pages of a database as of one commit. */
export interface LiveState {
  /** Path in the data directory without `.db`. */
  path: string;
  /** Id in the commit row. */
  id: string;
  number: number;
  nonce: number;
  place: number;
  hashes: PageHashes;
}

/** Lists the databases of a data directory. */
export function* databasesOf(dataDirectory: string): Generator<string> {
  for (const { path, kind } of scanFiles(dataDirectory)) if (kind === "database") yield path.slice(0, -ENDING.length);
}

/**
 * Reads a database while the server uses it. null: it was removed, or nothing was ever committed to it. Errors: those of `takeSnapshot`;
 * its WAL is restarted again and again.
 */
export function readLive(dataDirectory: string, path: string): LiveState | null {
  const file = join(dataDirectory, `${path}${ENDING}`);
  try {
    for (let attempt = 0; attempt < SNAPSHOTS_MAX; attempt++) {
      const snapshot = takeSnapshot(file);
      try {
        const { row } = snapshot;
        if (row === null || row.number === 0) return null;
        const hashes = hashesOf(snapshot);
        if (!snapshot.isIntact()) continue;
        return { path, id: row.file, number: row.number, nonce: row.nonce, place: row.place, hashes };
      } finally {
        snapshot.close();
      }
    }
  } catch (cause) {
    if (!existsSync(file)) return null;
    throw cause;
  }
  throw new Error(`${path} could not be read: its WAL is restarted again and again`);
}
