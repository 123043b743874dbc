import { expect, test } from "bun:test";
import { countTurns } from "../../../tests/support/event-loop.ts";
import { createPaces } from "./pace.ts";

test("one waiting piece of work continues in each turn of the event loop, in order", async () => {
  const begin = createPaces();
  const order: string[] = [];
  const counted = countTurns();
  const turns: number[] = [];
  const work = async (name: string): Promise<void> => {
    const pace = begin();
    for (let step = 0; step < 3; step++) {
      await pace.next();
      order.push(`${name}${step}`);
      turns.push(counted.turn);
    }
  };
  await Promise.all([work("a"), work("b"), work("c")]);
  counted.stop();
  expect(order).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]);
  expect(new Set(turns).size).toBe(turns.length);
});

test("pieces that begin in one turn of the event loop share its four milliseconds", async () => {
  let now = 0;
  const begin = createPaces(() => now);
  const isDue = Array.from({ length: 3 }, () => {
    const pace = begin();
    now += 2;
    return pace.isDue();
  });
  expect(isDue).toEqual([false, true, true]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(begin().isDue()).toBe(false);
});

test("a slice ends after four milliseconds, and a new one begins when the work goes on", async () => {
  let now = 0;
  const pace = createPaces(() => now)();
  now = 3;
  expect(pace.isDue()).toBe(false);
  now = 4;
  expect(pace.isDue()).toBe(true);
  await pace.next();
  expect(pace.isDue()).toBe(false);
});
