import { Database } from "bun:sqlite";
import fs from "node:fs";
import type { Ids } from "../../../kernel/ids.ts";
import { PAGE_BYTES } from "../limits.ts";
import type { OpenOptions } from "../types.ts";
import { layOutCommitRow } from "../writer/commit-gate.ts";
import { APPLICATION_ID_OFFSET, newFileId } from "./file-identity.ts";

/** Header offsets of the journal version, and the value for a WAL. */
const JOURNAL_VERSION_OFFSETS = [18, 19];
const WAL_VERSION = 2;

/**
 * Returns the content of an empty database after `migrate`. Copying it costs a tenth of creating the tables; creating them in
 * memory costs a fraction of creating them in a file, with its journal and its syncs.
 */
export function createTemplate(migrate: (sqlite: Database) => void): Uint8Array {
  const sqlite = new Database(":memory:");
  try {
    sqlite.run(`PRAGMA page_size = ${PAGE_BYTES}`);
    // A database without anything in it has no page; `createFile` writes the file's own number.
    sqlite.run("PRAGMA application_id = 1");
    migrate(sqlite);
    layOutCommitRow(sqlite);
    const content = new Uint8Array(sqlite.serialize());
    for (const offset of JOURNAL_VERSION_OFFSETS) content[offset] = WAL_VERSION;
    return content;
  } finally {
    sqlite.close();
  }
}

/**
 * Writes a new database atomically. From the caller's template it is written without a sync, as an instance's file has to be made
 * quickly: the returned descriptor must be synced before the first write is answered. It may be closed only after SQLite has closed
 * the file, because closing it drops every POSIX lock of this process on the file. Without a template, `migrate` makes the content,
 * which is on disk before the file has its name, as a server does not start on a file that a power cut left incomplete; returns
 * null then.
 */
export function createFile(
  path: string,
  { template }: Pick<OpenOptions, "template">,
  { ids, migrate }: { ids: Ids; migrate: (sqlite: Database) => void },
): number | null {
  const fileId = newFileId(ids);
  if (template !== undefined) return write(path, template(), { fileId, isSynced: false });
  fs.closeSync(write(path, createTemplate(migrate), { fileId, isSynced: true }));
  return null;
}

/** Writes `content`, with `fileId` in it, to a new file. Returns a descriptor of the file. */
function write(path: string, content: Uint8Array, how: { fileId: number; isSynced: boolean }): number {
  new DataView(content.buffer, content.byteOffset).setInt32(APPLICATION_ID_OFFSET, how.fileId);
  const temporaryPath = `${path}.new`;
  const descriptor = fs.openSync(temporaryPath, "w");
  try {
    // On a nearly full disk a call may write only a part; the next call then fails for lack of space.
    for (let written = 0; written < content.byteLength; ) written += fs.writeSync(descriptor, content, written);
    if (how.isSynced) fs.fdatasyncSync(descriptor);
    fs.renameSync(temporaryPath, path);
    return descriptor;
  } catch (error) {
    fs.closeSync(descriptor);
    fs.rmSync(temporaryPath, { force: true });
    throw error;
  }
}
