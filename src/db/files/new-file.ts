import { Database } from "bun:sqlite";
import fs from "node:fs";
import { PAGE_BYTES } from "../limits.ts";
import { APPLICATION_ID_OFFSET } from "./file-identity.ts";

/** Bytes of the header that say which journal a file uses, and the value for a WAL. */
const JOURNAL_VERSION_OFFSETS = [18, 19];
const WAL_VERSION = 2;

/** The content of an empty database after `migrate`. Copying it costs a tenth of making the tables anew. */
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
 * Writes a database that is not there yet, whole or not at all, and without waiting for the disk; `content` is marked with
 * `fileId`. The descriptor
 * returned is to be synced before the first write is answered. It may be closed only after SQLite has closed the file,
 * as closing it drops every POSIX lock of this process on it.
 */
export function writeNewFile(path: string, content: Uint8Array, fileId: number): number {
  new DataView(content.buffer, content.byteOffset).setInt32(APPLICATION_ID_OFFSET, fileId);
  const temporaryPath = `${path}.new`;
  const descriptor = fs.openSync(temporaryPath, "w");
  try {
    // A disk that is nearly full takes a part of it; the next call says that there is no room.
    for (let written = 0; written < content.byteLength; ) written += fs.writeSync(descriptor, content, written);
    fs.renameSync(temporaryPath, path);
    return descriptor;
  } catch (error) {
    fs.closeSync(descriptor);
    fs.rmSync(temporaryPath, { force: true });
    throw error;
  }
}
