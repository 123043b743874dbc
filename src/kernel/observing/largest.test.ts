import { expect, test } from "bun:test";
import { Largest } from "./largest.ts";

test("[RM340] the largest of many are found, in order, whatever order they come in", () => {
  const sizes = Array.from({ length: 1_000 }, (_, index) => (index * 617) % 1_000);
  const largest = new Largest<string>(7);
  for (const size of sizes) largest.add(`item ${size}`, size);
  expect(largest.sorted()).toEqual([999, 998, 997, 996, 995, 994, 993].map((size) => `item ${size}`));
});

test("[RM340] of equal ones the earlier come first, and fewer than wanted are all there", () => {
  const equal = new Largest<number>(3);
  for (let index = 0; index < 50; index++) equal.add(index, 1);
  expect(equal.sorted()).toEqual([0, 1, 2]);
  const few = new Largest<string>(10);
  few.add("small", 1);
  few.add("large", 2);
  expect(few.sorted()).toEqual(["large", "small"]);
});
