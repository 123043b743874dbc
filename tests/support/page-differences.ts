import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";

const PAGE_BYTES = 4096;
const FIRST_TRUNK_OFFSET = 32;

/** Names the pages in which a restored database differs from the file of a stopped server. Pages that are free are not counted. */
export function differences(live: string, copy: string): number[] {
  if (!existsSync(copy)) return [0];
  // The last connection moves what a crash has left in the WAL.
  if (existsSync(`${live}-wal`)) {
    using last = new Database(live, { readwrite: true, create: false });
    last.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
  }
  const [one, other] = [live, copy].map((path) => readFileSync(path));
  if (one === undefined || other === undefined || one.byteLength !== other.byteLength) return [0];
  const ignored = new Set(freePages(one));
  const found: number[] = [];
  for (let start = 0; start < one.byteLength; start += PAGE_BYTES) {
    const number = start / PAGE_BYTES + 1;
    if (ignored.has(number)) continue;
    if (!one.subarray(start, start + PAGE_BYTES).equals(other.subarray(start, start + PAGE_BYTES))) found.push(number);
  }
  return found;
}

function freePages(file: Buffer): number[] {
  const pages: number[] = [];
  if (file.byteLength < PAGE_BYTES) return pages;
  for (let trunk = file.readUInt32BE(FIRST_TRUNK_OFFSET); trunk !== 0; ) {
    const start = (trunk - 1) * PAGE_BYTES;
    pages.push(trunk);
    const count = file.readUInt32BE(start + 4);
    for (let leaf = 0; leaf < count; leaf++) pages.push(file.readUInt32BE(start + 8 + leaf * 4));
    trunk = file.readUInt32BE(start);
  }
  return pages;
}
