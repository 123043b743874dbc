/** Tests of the line of time. */
import { expect, test } from "bun:test";
import type { FullCopy, Gap, StoredFile } from "../format/manifest.ts";
import { TIMELINE_COPIES_MAX, TIMELINE_GAPS_MAX } from "../limits.ts";
import { timelineOf } from "./timeline.ts";

const RANGE = { from: 1_000, to: 90_000 };
const copyAt = (at: number): FullCopy => ({
  number: 1,
  nonce: 1,
  at,
  place: at,
  key: `copies/${at}`,
  sha256: "",
  isSegment: false,
  bytes: 10,
});
const file = (
  id: string,
  path: string,
  more: { copies: number[]; removed?: number; former?: string[] },
): StoredFile => ({
  id,
  path,
  pageBytes: 4096,
  entryBytes: 0,
  bytes: 100,
  formerIds: more.former ?? [],
  fulls: more.copies.map(copyAt),
  last: { number: 1, nonce: 1, at: 1, place: 1, pages: 1, checksum: "", entry: "" },
  removed: more.removed === undefined ? null : { at: more.removed, place: more.removed },
});
const gap = (id: string, from: number, to: number): Gap => ({
  id,
  file: id,
  from,
  to,
  fromPlace: from,
  toPlace: to,
  reason: "unread",
});
const time = (at: number): string => new Date(at).toISOString();
const span = (from: number, to: number) => ({ from: time(from), to: time(to) });

test("[BK386] the times of an instance are those in which it was there, with the gaps of all its ids", () => {
  const files = [
    file("later", "databases/clubs/a", { copies: [50_000], former: ["before"] }),
    file("first", "databases/clubs/a", { copies: [500], removed: 20_000 }),
    file("other", "databases/clubs/b", { copies: [500] }),
  ];
  const gaps = [
    gap("other", 2_000, 3_000),
    gap("before", 51_000, 52_000),
    gap("first", 4_000, 5_000),
    gap("first", 0, 500),
  ];
  const found = timelineOf({ files, gaps }, RANGE, "clubs/a");
  expect(found?.spans).toEqual([span(1_000, 20_000), span(50_000, 90_000)]);
  expect(found?.gaps.map(({ from, file: of }) => [from, of])).toEqual([
    [time(4_000), "first"],
    [time(51_000), "before"],
  ]);
  expect([found?.files, found?.bytes]).toEqual([1, 200]);
  expect(timelineOf({ files, gaps }, RANGE, "clubs/c")).toBeNull();
  const all = timelineOf({ files, gaps }, RANGE, null);
  expect(all?.spans).toEqual([span(1_000, 90_000)]);
  expect(all?.gaps).toHaveLength(3);
});

test("[BK386] copies of one minute are one, and lists end with the newest", () => {
  const files = [
    file("a", "databases/a", { copies: [60_001, 61_000, 120_000] }),
    file("b", "databases/b", { copies: Array.from({ length: 300 }, (_, index) => (index + 3) * 60_000) }),
  ];
  const gaps = Array.from({ length: 150 }, (_, index) => gap("a", 2_000 + index, 2_001 + index)).reverse();
  const found = timelineOf({ files, gaps }, RANGE, null);
  expect(found?.copies).toHaveLength(TIMELINE_COPIES_MAX);
  expect(found?.copies.at(-1)?.at).toBe(time(302 * 60_000));
  expect(found?.gaps).toHaveLength(TIMELINE_GAPS_MAX);
  expect(found?.gaps.at(-1)?.from).toBe(time(2_149));
  const few = timelineOf({ files: files.slice(0, 1), gaps: [] }, RANGE, null);
  expect(few?.copies).toEqual([
    { at: time(60_001), files: 2, bytes: 20 },
    { at: time(120_000), files: 1, bytes: 10 },
  ]);
});
