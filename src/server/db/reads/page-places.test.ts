import { expect, test } from "bun:test";
import { PAGES_MAX } from "../limits.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import { PagePlaces } from "./long-reads.ts";

test("[DB127] a caller has at most half of the free places for pages, and the server all", () => {
  const places = new PagePlaces();
  const ends: (() => void)[] = [];
  let endedCount = 0;
  const fill = (caller: string): number => {
    let count = 0;
    for (; places.mayAdd(caller); count++) ends.push(places.add(caller, () => endedCount++));
    return count;
  };
  const counts = ["a", "b", "c", "d", "e", "f"].map(fill);
  expect(counts[0]).toBeLessThanOrEqual(PAGES_MAX / 2);
  expect(counts.slice(0, 4).every((count) => count > 0)).toBe(true);
  expect(counts.reduce((sum, count) => sum + count)).toBe(PAGES_MAX);
  expect(places.mayAdd(SERVER_CALLER.callerName)).toBe(false);
  // The first end counts.
  ends[0]?.();
  ends[0]?.();
  expect(endedCount).toBe(1);
  expect([places.mayAdd("g"), fill(SERVER_CALLER.callerName)]).toEqual([true, 1]);
  for (const end of ends) end();
  expect(fill(SERVER_CALLER.callerName)).toBe(PAGES_MAX);
});
