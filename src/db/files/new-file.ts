import { Database } from "bun:sqlite";
import fs from "node:fs";
import { PAGE_BYTES } from "../limits.ts";
import { APPLICATION_ID_OFFSET } from "./file-identity.ts";

/** Header offsets of the journal version, and the value for a WAL. */
const JOURNAL_VERSION_OFFSETS = [18, 19];
const WAL_VERSION = 2;

/** The content of an empty database after `migrate`. Copying it costs a tenth of creating the tables. */
export function createTemplate(migrate: (sqlite: Database) => void): Uint8Array {
  const sqlite = new Database(":memory:");
  try {
    sqlite.run(`PRAGMA page_size = ${PAGE_BYTES}`);
    migrate(sqlite);
    const content = new Uint8Array(sqlite.serialize());
    for (const offset of JOURNAL_VERSION_OFFSETS) content[offset] = WAL_VERSION;
    return content;
  } finally {
    sqlite.close();
  }
}

/**
 * Writes a new database atomically and without a sync; `fileId` is written into `content`. The returned descriptor must be
 * synced before the first write is answered. It may be closed only after SQLite has closed the file, because closing it
 * drops every POSIX lock of this process on the file.
 */
export function writeNewFile(path: string, content: Uint8Array, fileId: number): number {
  new DataView(content.buffer, content.byteOffset).setInt32(APPLICATION_ID_OFFSET, fileId);
  const temporaryPath = `${path}.new`;
  const descriptor = fs.openSync(temporaryPath, "w");
  try {
    // On a nearly full disk a call may write only a part; the next call then fails for lack of space.
    for (let written = 0; written < content.byteLength; ) written += fs.writeSync(descriptor, content, written);
    fs.renameSync(temporaryPath, path);
    return descriptor;
  } catch (error) {
    fs.closeSync(descriptor);
    fs.rmSync(temporaryPath, { force: true });
    throw error;
  }
}
