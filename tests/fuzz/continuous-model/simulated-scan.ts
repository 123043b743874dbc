import { zstdCompressSync } from "node:zlib";
import { ContainerWriter } from "../../../src/server/areas/backup/continuous/format/container.ts";
import {
  type CopyDescription,
  FORMAT,
  FORMAT_VERSION,
} from "../../../src/server/areas/backup/continuous/format/manifest.ts";
import { hashText, PageHashes, pageHash } from "../../../src/server/areas/backup/continuous/format/pages.ts";
import type { ShipDisk } from "../../../src/server/areas/backup/continuous/ship/disk.ts";
import type { Scanned } from "../../../src/server/areas/backup/continuous/ship/scan.ts";
import { COMMIT_PAGE, joined, PAGE_BYTES, type Pages, type SimulatedFile } from "./simulated-file.ts";

/** Pages of which more than a few are copied to an object of their own. */
const LARGE_PAGES = 3;

/** Compares a file with what is known of it, or copies it, as the storing process does. */
export function scanOf(
  file: SimulatedFile,
  { known, purpose, id }: Parameters<ShipDisk["scan"]>[1],
  copies: Map<string, Uint8Array<ArrayBuffer>>,
): Scanned {
  const { row, pages } = file;
  const stamp = file.opened === null && !file.hasLeftWal ? file.stamp : null;
  const of = { row: { ...row }, commitPage: COMMIT_PAGE, pageBytes: PAGE_BYTES, pages: pages.length, stamp };
  // Larger files are copied to an object of their own.
  if (purpose === "confirm") return { ...of, found: { kind: "read", hashes: hashesOf(pages) } };
  if (purpose === "copy" || (known === null && pages.length > LARGE_PAGES))
    return { ...of, found: copyOf(file, purpose === "copy" ? `${id}.due` : id, copies) };
  const all = new Map<number, Uint8Array>(pages.map((page, index) => [index + 1, page]));
  if (known === null) return { ...of, found: { kind: "full", changed: { pages: all, count: pages.length } } };
  const changed = new Map(
    [...all].filter(
      ([number, page]) => number > known.count || hashText(known.get(number)) !== hashText(pageHash(number, page)),
    ),
  );
  if (changed.size === 0 && pages.length === known.count) return { ...of, found: { kind: "equal" } };
  if (changed.size > LARGE_PAGES) return { ...of, found: copyOf(file, id, copies) };
  return { ...of, found: { kind: "changed", changed: { pages: changed, count: pages.length } } };
}

function copyOf(
  { pages, row, path }: SimulatedFile,
  id: string,
  copies: Map<string, Uint8Array<ArrayBuffer>>,
): Scanned["found"] {
  const hashes = hashesOf(pages);
  const chunks: Uint8Array[] = [];
  const container = new ContainerWriter((bytes) => chunks.push(bytes));
  const blocks = [container.add(zstdCompressSync(joined(pages)))];
  const { number, nonce, at, place } = row;
  const description: CopyDescription = {
    format: FORMAT,
    version: FORMAT_VERSION,
    id: row.file || id,
    path,
    ...{ number, nonce, at, place },
    pageBytes: PAGE_BYTES,
    pages: pages.length,
    checksum: hashes.checksum,
    pagesPerBlock: pages.length,
    blocks,
  };
  const finished = container.finish(description);
  const copy = `${id}.copy`;
  copies.set(copy, new Uint8Array(Buffer.concat(chunks)));
  return { kind: "copy", copy: { path: copy, ...finished }, hashes };
}

function hashesOf(pages: Pages): PageHashes {
  const hashes = PageHashes.blank(PAGE_BYTES, pages.length);
  for (const [index, page] of pages.entries()) hashes.set(index + 1, pageHash(index + 1, page));
  return hashes;
}
