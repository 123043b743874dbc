import { Database } from "bun:sqlite";
import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import type { Ids } from "../../../kernel/ids.ts";
import { CHECK_AFTER_CRASH_MAX_BYTES } from "../limits.ts";
import { hasWal } from "../open-unchanged.ts";
import { openError } from "../writer/sqlite-errors.ts";

const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
/** Offset of the application id in the header of an SQLite file. */
export const APPLICATION_ID_OFFSET = 68;

/**
 * Returns a unique number for a file, never 0. It is stored as SQLite's application id, which is in the first page and so in the
 * WAL.
 */
export function newFileId(ids: Ids): number {
  return (Buffer.from(ids.secret(4), "base64url").readUInt32BE() >>> 1) | 1;
}

/** Stores the number. Call before WAL mode is enabled, so that the number is in the database file itself. */
export function markFile(sqlite: Database, ids: Ids): void {
  const [present] = sqlite.query<{ application_id: number }, []>("PRAGMA application_id").all();
  if (present?.application_id === 0) sqlite.run(`PRAGMA application_id = ${newFileId(ids)}`);
}

/**
 * Refuses an existing file that is not writable, which SQLite would report only at the first write. Also refuses a file
 * whose WAL belongs to another file: SQLite would write the pages of one file into the other. A WAL exists only after a
 * crash; a file of at most CHECK_AFTER_CRASH_MAX_BYTES is checked then. Errors: what is wrong, without the path.
 */
export function assertOpenable(path: string): void {
  accessSync(path, constants.R_OK | constants.W_OK);
  if (!hasWal(path)) return;
  const { size } = statSync(path);
  const fileId = readFileId(path);
  // A read-only connection changes neither file when it is closed.
  const sqlite = new Database(path, { readonly: true });
  try {
    const [present] = sqlite.query<{ application_id: number }, []>("PRAGMA application_id").all();
    if (fileId !== 0 && present?.application_id !== fileId) {
      throw new Error(
        "its -wal file belongs to another database; move the -wal file away to open the database without it",
      );
    }
    if (size > CHECK_AFTER_CRASH_MAX_BYTES) return;
    const [found] = sqlite.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").all();
    if (found?.quick_check !== "ok") throw new Error(`its content is damaged (${found?.quick_check ?? "unreadable"})`);
  } finally {
    sqlite.close();
  }
}

/** Refuses to create a file beside a WAL, whose pages would become the new file's. Errors: one that names the path. */
export function assertCreatable(path: string): void {
  if (!hasWal(path)) return;
  const reason =
    "it is missing, and its -wal file is there; restore the file, or move the -wal file away to begin without its data";
  throw openError(path, new Error(reason));
}

/** The reason for refusing a database file of 0 bytes. */
export const EMPTY_FILE =
  "it is empty (0 bytes), and the server makes no empty file: its data was lost. Restore it from a backup, or delete the file to begin without its data";

export const isEmptyFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.size === 0;

/** Reads the number of a file. 0: it has none, because it is empty or was created by a version without numbers. */
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
