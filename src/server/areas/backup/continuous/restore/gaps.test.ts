import { expect, test } from "bun:test";
import { Archive } from "../format/archive.ts";
import type { Gap, Manifest, StoredFile } from "../format/manifest.ts";
import { requireNoGap } from "./databases.ts";

const gap: Gap = { id: "b", file: "databases/b", from: 10, to: 20, fromPlace: 100, toPlace: 200, reason: "unread" };
const fileOf = (id: string): StoredFile => ({
  id,
  formerIds: [],
  path: `databases/${id}`,
  pageBytes: 4096,
  fulls: [],
  last: { number: 1, nonce: 1, at: 30, place: 300, pages: 1, checksum: "", entry: "e" },
  entryBytes: 0,
  bytes: 0,
  removed: null,
});
// The members that gaps concern.
const archive = new Archive({ files: [fileOf("a"), fileOf("b")], gaps: [gap] } as unknown as Manifest);

test("[BK352] a restore of all files refuses a moment in a gap of any, also of one that it does not have then", () => {
  expect(() => requireNoGap(archive, null, 150)).toThrow("databases/b");
  for (const place of [100, 200, null]) expect(() => requireNoGap(archive, null, place)).not.toThrow();
});

test("[BK352] a restore of some files refuses a moment in their gaps only", () => {
  expect(() => requireNoGap(archive, [fileOf("b")], 150)).toThrow("databases/b");
  expect(() => requireNoGap(archive, [fileOf("a")], 150)).not.toThrow();
});
