/** Contents of rows of the log: what is read is what was written, and anything else is refused. */
import { expect, test } from "bun:test";
import { random, testSeed } from "../../../../tests/support/random.ts";
import { DamagedContent, decodeContent, type EntryContent, encodeContent, UnknownContent } from "./content.ts";
import { CONTENT_MAX_BYTES } from "./limits.ts";

const chance = random(testSeed(1));
const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => chance.below(256));
const previous = { number: 1_764_000_000_000_000, nonce: 281_474_976_710_655 };
const changed = { pageBytes: 512, numbers: [7, 1], images: bytes(1024) };

const CONTENTS: readonly EntryContent[] = [
  { kind: "created", path: "databases/shop/tenant-1.db", content: bytes(2048) },
  { kind: "commit", number: 2, nonce: 3, at: 4, place: 5, previous, pages: 9, parts: 2, ...changed },
  { kind: "part", index: 1, previous, ...changed },
  { kind: "removed", path: "kv/cache.db" },
  { kind: "copied", path: "system.db", number: 2, nonce: 3, key: "copies/1", sha256: "00", bytes: 4096 },
];

test("[CLU60] a content is read as it was written", () => {
  for (const content of CONTENTS) expect(decodeContent(encodeContent(content))).toEqual(content);
});

test("[CLU60] a content with any other byte, or without its end, is refused", () => {
  for (const content of CONTENTS) {
    const encoded = encodeContent(content);
    for (let index = 0; index < encoded.byteLength; index++) {
      const flipped = encoded.slice();
      flipped[index] = (flipped[index] ?? 0) ^ (1 << chance.below(8));
      expect(() => decodeContent(flipped)).toThrow(index === 0 ? UnknownContent : DamagedContent);
      expect(() => decodeContent(encoded.subarray(0, index))).toThrow(DamagedContent);
    }
  }
});

test("[CLU60] a content of a later version is unknown, and not damaged", () => {
  const [content] = CONTENTS;
  if (content === undefined) throw new Error("there is none");
  const later = encodeContent(content);
  later[0] = 2;
  expect(() => decodeContent(later)).toThrow(UnknownContent);
  // A kind that this version does not know.
  const other = encodeContent({ ...content, kind: "moved" } as never);
  expect(() => decodeContent(other)).toThrow(UnknownContent);
});

test("[CLU60] a path that leads out of the data directory is refused", () => {
  for (const path of [
    "../system.db",
    "/etc/passwd",
    "kv/../../a.db",
    "kv//a.db",
    "",
    ".",
    "a\\b.db",
    "a\0.db",
    "kv/.hidden",
  ])
    expect(() => decodeContent(encodeContent({ kind: "removed", path }))).toThrow(DamagedContent);
});

test("[CLU60] a content that is too large is not written", () => {
  const content = new Uint8Array(CONTENT_MAX_BYTES);
  expect(() => encodeContent({ kind: "created", path: "a.db", content })).toThrow(RangeError);
});
