import { Database } from "bun:sqlite";
import { copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { commitsOf } from "../../db/capture/commit-frames.ts";
import { COMMIT_TABLE, layOutCommitRow } from "../../db/writer/commit-gate.ts";
import type { CommitContent } from "../entries/content.ts";
import { FollowedFile, type FollowedFileDeps } from "./followed-file.ts";

const PAGE_BYTES = 4096;
const WAL_HEADER_BYTES = 32;
const ROWS = 300;

/** A version of SQLite whose files cannot be followed: see docs/decisions/020. */
export class UnfollowableSqlite extends Error {}

/**
 * Tries once, with two small files in a folder that it makes and removes, whether SQLite reads what a follower appends to a WAL.
 * Errors: UnfollowableSqlite; those of the disk.
 */
export function requireTechnique(folder: string, deps: FollowedFileDeps): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const [path, commit] = [
      join(folder, "followed.db"),
      commitOf(join(folder, "owner.db"), join(folder, "followed.db")),
    ];
    const reader = new Database(path, { readonly: true });
    const file = new FollowedFile(path, deps);
    try {
      const rows = reader.query<{ rows: number }, []>(`SELECT count(*) AS "rows" FROM "tried"`);
      const before = rows.get()?.rows;
      file.apply([commit]);
      const check = reader.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get()?.integrity_check;
      if (before !== 0 || rows.get()?.rows !== ROWS || check !== "ok")
        throw new Error(`it sees ${rows.get()?.rows} of ${ROWS} rows, and says ${check}`);
    } finally {
      reader.close();
      file.close();
    }
  } catch (cause) {
    throw new UnfollowableSqlite("This version of SQLite does not read what a follower appends to its files", {
      cause,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes a database and a copy of it, and returns a commit that only the first one has. */
function commitOf(path: string, copy: string): CommitContent {
  const sqlite = new Database(path, { create: true, readwrite: true });
  try {
    sqlite.run(`PRAGMA page_size = ${PAGE_BYTES}`);
    sqlite.run("PRAGMA journal_mode = WAL");
    // It is removed at once.
    sqlite.run("PRAGMA synchronous = OFF");
    layOutCommitRow(sqlite);
    sqlite.run(`CREATE TABLE "tried" ("text" TEXT)`);
    sqlite.run(`UPDATE "${COMMIT_TABLE}" SET "number" = 1, "nonce" = 1`);
    sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
    copyFileSync(path, copy);
    sqlite.run("BEGIN");
    const insert = sqlite.query(`INSERT INTO "tried" VALUES (?)`);
    for (let row = 0; row < ROWS; row++) insert.run(`row ${row}`);
    sqlite.run(`UPDATE "${COMMIT_TABLE}" SET "number" = 2`);
    sqlite.run("COMMIT");
    const frames = readFileSync(`${path}-wal`).subarray(WAL_HEADER_BYTES);
    const [commit] = [...commitsOf(frames, PAGE_BYTES, new Map())];
    if (commit === undefined) throw new Error("a commit is not in the WAL");
    const previous = { number: 1, nonce: 1 };
    const images = new Uint8Array(Buffer.concat([...commit.pages.values()]));
    const changed = { pageBytes: PAGE_BYTES, numbers: [...commit.pages.keys()], images, pages: commit.count };
    return { kind: "commit", number: 2, nonce: 1, at: 0, place: 0, previous, parts: 0, ...changed };
  } finally {
    sqlite.close();
  }
}
