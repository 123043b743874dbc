import { expect, test } from "bun:test";
import { DAY_MS } from "../../../../../kernel/time/duration.ts";
import { Archive } from "../format/archive.ts";
import { ContainerWriter } from "../format/container.ts";
import { FORMAT, FORMAT_VERSION, type Manifest, type SegmentFacts, type StoredFile } from "../format/manifest.ts";
import type { Store } from "../store/store.ts";
import { removeLeft, takeOutdated } from "./retention.ts";

const NOW = 100 * DAY_MS;
const day = (count: number): number => count * DAY_MS;
const position = (days: number) => ({ number: days, nonce: 1, at: day(days), place: day(days) });

const copy = (days: number) => ({ ...position(days), key: `copies/${days}`, sha256: "", isSegment: false, bytes: 1 });

const file = (id: string, copies: number[], removed: number | null = null): StoredFile => ({
  id,
  formerIds: [],
  path: id,
  pageBytes: 4096,
  fulls: copies.map(copy),
  last: { ...position(99), pages: 1, checksum: "", entry: "e" },
  entryBytes: 0,
  bytes: 0,
  removed: removed === null ? null : { at: day(removed), place: day(removed) },
});

const segment = (days: number, ids: string[]): SegmentFacts => ({
  counter: days,
  key: `segments/${days}`,
  sha256: "",
  bytes: 1,
  from: day(days),
  to: day(days),
  place: day(days),
  firstPlace: day(days),
  files: ids.map((id) => [id, days]),
});

/** Makes an archive with an index for each list of segments. */
function archiveOf(files: StoredFile[], lists: SegmentFacts[][]): { archive: Archive; store: Store } {
  const objects = new Map<string, Uint8Array<ArrayBuffer>>();
  const indexes = lists.map((segments, n) => {
    const chunks: Uint8Array[] = [];
    new ContainerWriter((bytes) => chunks.push(bytes)).finish({ format: FORMAT, version: FORMAT_VERSION, segments });
    objects.set(`indexes/${n}`, new Uint8Array(Buffer.concat(chunks)));
    const to = Math.max(...segments.map((one) => one.to));
    const counters = { first: segments[0]?.counter ?? 0, last: segments.at(-1)?.counter ?? 0 };
    return { key: `indexes/${n}`, sha256: "", bytes: 1, from: 0, to, place: to, ...counters };
  });
  const manifest = {
    keepDays: 7,
    files,
    indexes,
    segments: [],
    merged: [],
    plain: [],
    gaps: [],
    gone: [],
    missing: [],
  };
  // The members that deletions look at.
  const archive = new Archive(manifest as unknown as Manifest);
  return { archive, store: { read: async (key: string) => objects.get(key) ?? null } as Store };
}

test("[BK345] the copy before the first kept moment stays with what follows it, and what is older goes", async () => {
  const { archive, store } = archiveOf(
    [file("a", [80, 90, 95])],
    [[segment(81, ["a"]), segment(89, ["a"])], [segment(91, ["a"])]],
  );
  expect(await takeOutdated(store, archive, NOW)).toEqual(["copies/80", "segments/81", "segments/89", "indexes/0"]);
  expect(archive.manifest.files[0]?.fulls.map(({ key }) => key)).toEqual(["copies/90", "copies/95"]);
  expect(archive.manifest.indexes.map(({ key }) => key)).toEqual(["indexes/1"]);
});

test("[BK345] segments stay that any file needs, with all behind them", async () => {
  const quiet = file("quiet", [10]);
  const lists = [[segment(11, ["quiet"])], [segment(20, ["a"])]];
  const { archive, store } = archiveOf([file("a", [90]), quiet], lists);
  expect(await takeOutdated(store, archive, NOW)).toEqual([]);
  expect(archive.manifest.indexes).toHaveLength(2);
});

test("[BK345] a file that is gone for longer goes with its copies, and one that is not stays", async () => {
  const { archive, store } = archiveOf([file("old", [50], 60), file("late", [50], 98)], [[segment(51, ["old"])]]);
  expect(await takeOutdated(store, archive, NOW)).toEqual(["copies/50", "segments/51", "indexes/0"]);
  expect(archive.manifest.files.map(({ id }) => id)).toEqual(["late"]);
});

test("[BK345] a copy within a segment keeps the segment", async () => {
  const one = file("a", []);
  one.fulls = [{ ...copy(50), key: "segments/50", isSegment: true }];
  const { archive, store } = archiveOf([one], [[segment(49, ["a"]), segment(50, ["a"])]]);
  expect(await takeOutdated(store, archive, NOW)).toEqual([]);
});

test("[BK385] what a lock of objects has refused is removed later, oldest first, up to the first that is locked still", async () => {
  const { archive } = archiveOf([file("a", [10, 90])], [[segment(80, ["a"])]]);
  archive.manifest.merged = [];
  const named = "copies/000000000010-x";
  for (const copied of archive.manifest.files[0]?.fulls ?? []) if (copied.place === day(10)) copied.key = named;
  const keys = ["11", "12", "13", "80", "81"].map((counter) => `segments/0000000000${counter}-x`);
  const locked = new Set([keys[2]]);
  const asked: string[] = [];
  const store = {
    async *list(prefix: string) {
      for (const key of [...keys, named, "copies/000000000011-x"]) if (key.startsWith(prefix)) yield { key, bytes: 1 };
    },
    async remove(key: string) {
      asked.push(key);
      return !locked.has(key);
    },
  } as unknown as Store;
  await removeLeft(store, archive.manifest);
  expect(asked).toEqual([...keys.slice(0, 3), "copies/000000000011-x"]);
});
