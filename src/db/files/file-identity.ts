import { Database } from "bun:sqlite";
import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import type { Ids } from "../../kernel/ids.ts";
import { CHECK_AFTER_CRASH_MAX_BYTES } from "../limits.ts";

const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
/** Where the header of an SQLite file has its application id. */
export const APPLICATION_ID_OFFSET = 68;

/** A number of its own for each file, never 0: SQLite's application id, which is in the first page and so in the WAL. */
export function newFileId(ids: Ids): number {
  return (Buffer.from(ids.secret(4), "base64url").readUInt32BE() >>> 1) | 1;
}

/** Before the file becomes one with a WAL, so that the number is in the file itself from its beginning. */
export function markFile(sqlite: Database, ids: Ids): void {
  const [present] = sqlite.query<{ application_id: number }, []>("PRAGMA application_id").all();
  if (present?.application_id === 0) sqlite.run(`PRAGMA application_id = ${newFileId(ids)}`);
}

/**
 * Refuses an existing file that may not be written, which SQLite would tell only at the first write, and one that does not
 * go with the WAL beside it: SQLite would put one file's pages into another. A WAL is there after a crash only; a file of at most
 * CHECK_AFTER_CRASH_MAX_BYTES is looked through then. Errors: what is wrong, without the path.
 */
export function assertOpenable(path: string): void {
  accessSync(path, constants.R_OK | constants.W_OK);
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const { size } = statSync(path);
  const fileId = readFileId(path);
  // A connection that may not write leaves both files as they are when it is closed.
  const sqlite = new Database(path, { readonly: true });
  try {
    const [present] = sqlite.query<{ application_id: number }, []>("PRAGMA application_id").all();
    if (fileId !== 0 && present?.application_id !== fileId) {
      throw new Error("the -wal file beside it belongs to another database; move that away to open this one without");
    }
    if (size > CHECK_AFTER_CRASH_MAX_BYTES) return;
    const [found] = sqlite.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").all();
    if (found?.quick_check !== "ok") throw new Error(`its content is damaged (${found?.quick_check ?? "unreadable"})`);
  } finally {
    sqlite.close();
  }
}

/** 0: none, as of files that are empty, or older than ids. */
function readFileId(path: string): number {
  const header = Buffer.alloc(HEADER_BYTES);
  const descriptor = openSync(path, "r");
  try {
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(descriptor);
  }
  return header.toString("latin1", 0, MAGIC.length) === MAGIC ? header.readInt32BE(APPLICATION_ID_OFFSET) : 0;
}
