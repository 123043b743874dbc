import { expect, test } from "bun:test";
import { BoundedMap } from "./bounded-map.ts";

test("the least recently used entry is evicted; onEvict is called for it alone", () => {
  const evicted: string[] = [];
  const map = new BoundedMap<string, { at: number }>(2, (key, { at }) => evicted.push(`${key}${at}`));
  map.set("a", { at: 1 });
  map.set("b", { at: 1 });
  map.get("a");
  map.peek("b");
  map.set("a", { at: 2 });
  map.set("c", { at: 1 });
  expect(evicted).toEqual(["b1"]);
  map.delete("c");
  map.clear();
  expect([evicted, map.size]).toEqual([["b1"], 0]);
});
