import { expect, test } from "bun:test";
import type { Change } from "../../db/index.ts";
import { WATCHED_PLACES_MAX } from "./limits.ts";
import type { RuleAddress } from "./lookups.ts";
import { LookupWatches } from "./watches.ts";

const SHARED = { namespace: "shared", instanceId: null };
const place = (fields: string[], values: (string | number | null)[], table = "members") => ({
  ...SHARED,
  table,
  fields,
  values,
});
const change = (before: Change["before"], after: Change["after"], table = "members"): Change[][] => [
  [{ table, id: String((after ?? before)?.["id"]), before, after }],
];

const touchedBy = (watches: LookupWatches<string>, ...[address, groups]: [RuleAddress, Change[][]]): string[] => {
  const touched = new Set<string>();
  watches.touched(address, groups, (watcher) => touched.add(watcher));
  return [...touched].sort();
};

const deletedBy = (watches: LookupWatches<string>, address: RuleAddress): string[] => {
  const touched = new Set<string>();
  watches.touchedFile(address, (watcher) => touched.add(watcher));
  return [...touched];
};

test("[AC200] a change names those who looked at its record as it was or as it is", () => {
  const watches = new LookupWatches<string>();
  watches.watch("by id").lookedAt(place(["id"], ["ann"]));
  watches.watch("by user").lookedAt(place(["userId"], ["ann"]));
  watches.watch("by both").lookedAt(place(["projectId", "userId"], [7, "ann"]));
  watches.watch("elsewhere").lookedAt({ ...place(["id"], ["ann"]), namespace: "teams", instanceId: "a" });
  const touched = (before: Change["before"], after: Change["after"]) =>
    touchedBy(watches, SHARED, change(before, after));
  expect(touched(null, { id: "ann", userId: "bob", projectId: 1 })).toEqual(["by id"]);
  expect(touched({ id: "m", userId: "ann", projectId: 7 }, { id: "m", userId: "bob", projectId: 7 })).toEqual([
    "by both",
    "by user",
  ]);
  expect(touched({ id: "m", userId: "ann", projectId: 8 }, null)).toEqual(["by user"]);
  expect(touched(null, { id: "m", userId: null, projectId: "7" })).toEqual([]);
  expect(touchedBy(watches, SHARED, change(null, { id: "ann" }, "tasks"))).toEqual([]);
  expect(touchedBy(watches, { namespace: "teams", instanceId: "a" }, change({ id: "ann" }, null))).toEqual([
    "elsewhere",
  ]);
  expect(deletedBy(watches, { namespace: "teams", instanceId: "a" })).toEqual(["elsewhere"]);
  expect(deletedBy(watches, { namespace: "teams", instanceId: "b" })).toEqual([]);
});

test("[AC200] a watcher is watching until its last watch ends, and an ended watch leaves nothing behind", () => {
  const watches = new LookupWatches<string>();
  const first = watches.watch("ann");
  const second = watches.watch("ann");
  first.lookedAt(place(["id"], ["x"]));
  first.lookedAt(place(["id"], ["x"]));
  second.lookedAt(place(["id"], ["x"]));
  first.end();
  expect(touchedBy(watches, SHARED, change(null, { id: "x" }))).toEqual(["ann"]);
  second.end();
  expect(touchedBy(watches, SHARED, change(null, { id: "x" }))).toEqual([]);
  expect(watches.isUnwatched(SHARED)).toBe(true);
});

test("[AC200] values of different types are different values", () => {
  const watches = new LookupWatches<string>();
  watches.watch("text").lookedAt(place(["n"], ["5"]));
  watches.watch("number").lookedAt(place(["n"], [5]));
  watches.watch("null").lookedAt(place(["n"], [null]));
  const touched = (n: string | number | null) => touchedBy(watches, SHARED, change(null, { id: "m", n }));
  expect([touched("5"), touched(5), touched(null)]).toEqual([["text"], ["number"], ["null"]]);
});

test("[AC201] beyond a number of places a watch is one of whole tables", () => {
  const watches = new LookupWatches<string>();
  const watch = watches.watch("ann");
  for (let index = 0; index <= WATCHED_PLACES_MAX; index++) watch.lookedAt(place(["id"], [`m${index}`]));
  expect(touchedBy(watches, SHARED, change(null, { id: "never looked at" }))).toEqual(["ann"]);
  watch.end();
  expect(watches.isUnwatched(SHARED)).toBe(true);
});
