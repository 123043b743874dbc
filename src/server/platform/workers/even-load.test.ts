import { expect, test } from "bun:test";
import { Shedding } from "../../http/workers/shedding.ts";
import { EvenLoad } from "./even-load.ts";

const SECOND_MS = 1_000;

test("[WK61] who has more than its part ends connections, until all have theirs", () => {
  const load = new EvenLoad(0, [1_000, 0]);
  expect(load.look(SECOND_MS, [2_000, 0])).toEqual([0.5, 0]);
  expect(load.look(2 * SECOND_MS, [2_700, 300])).toEqual([2 / 7, 0]);
  expect(load.look(3 * SECOND_MS, [3_000, 1_000])).toEqual([0, 2 / 7]);
  expect(load.look(4 * SECOND_MS, [3_500, 1_500])).toEqual([0, 0]);
  expect(load.look(5 * SECOND_MS, [4_000, 2_000])).toEqual([0, 0]);
  expect(load.look(6 * SECOND_MS, [4_500, 2_500])).toBeNull();
});

test("[WK61] few requests move nobody, and it ends after a minute", () => {
  const load = new EvenLoad(0, [0, 0]);
  expect(load.look(SECOND_MS, [10, 0])).toEqual([0, 0]);
  expect(load.look(59 * SECOND_MS, [9_000, 0])).toEqual([0.5, 0]);
  expect(load.look(60 * SECOND_MS, [18_000, 0])).toBeNull();
});

test("[WK61] a worker that counts from zero again has no requests", () => {
  const load = new EvenLoad(0, [0, 5_000]);
  expect(load.look(SECOND_MS, [1_000, 20])).toEqual([0.5, 0]);
});

test("[WK61] a share of the connections is ended, at most 50 at once", () => {
  const shedding = new Shedding();
  const taken = (): number => Array.from({ length: 1_000 }, () => shedding.takes()).filter(Boolean).length;
  expect(taken()).toBe(0);
  shedding.begin(0.3, 10);
  expect(taken()).toBe(3);
  shedding.begin(0.5, 900);
  expect([taken(), taken()]).toEqual([50, 0]);
  shedding.begin(0, 900);
  expect(taken()).toBe(0);
});
