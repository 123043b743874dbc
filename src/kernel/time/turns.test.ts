import { expect, test } from "bun:test";
import { countTurns } from "../../../tests/support/event-loop.ts";
import { heapBytes } from "../../../tests/support/heap.ts";
import { nextTurn } from "./next-turn.ts";
import { createTurns } from "./turns.ts";

test("short pieces of work that follow one another take no more of a turn than a long one", async () => {
  let now = 0;
  const turns = createTurns(() => now);
  const counted = countTurns();
  const spent = new Map<number, number>();
  function* work(steps: number): Generator<void, number> {
    for (let step = 0; step < steps; step++) {
      now += 1;
      spent.set(counted.turn, (spent.get(counted.turn) ?? 0) + 1);
      yield;
    }
    return steps;
  }
  const results = await Promise.all([3, 3, 3, 10, 1, 3].map((steps) => turns.run(work(steps))));
  counted.stop();
  expect(results).toEqual([3, 3, 3, 10, 1, 3]);
  expect(spent.size).toBeGreaterThanOrEqual(6);
  expect(Math.max(...spent.values())).toBe(4);
});

test("short work runs at once, until what came in this turn has taken its time", async () => {
  let now = 0;
  const turns = createTurns(() => now);
  const counted = countTurns();
  const spent = new Map<number, number>();
  const never = new Promise<number>(() => {});
  const work = () => {
    now += 3;
    spent.set(counted.turn, (spent.get(counted.turn) ?? 0) + 3);
    return now;
  };
  expect(turns.soon(work)).toBe(3);
  const results = Array.from({ length: 10 }, () => turns.soon(work));
  expect(results.slice(0, 3)).toEqual([6, 9, 12]);
  // A result that never comes keeps nothing waiting.
  void turns.soon(() => never);
  const failing = turns.soon(() => {
    throw new Error("no");
  });
  const last = turns.soon(work);
  expect(await Promise.all(results)).toEqual([6, 9, 12, 15, 18, 21, 24, 27, 30, 33]);
  await expect(failing).rejects.toThrow("no");
  expect(await last).toBe(36);
  counted.stop();
  expect(Math.max(...spent.values())).toBe(12);
  expect(spent.size).toBeGreaterThanOrEqual(5);
  await nextTurn();
  expect(turns.soon(work)).toBe(39);
});

test("work that fails does not keep the next from running", async () => {
  const turns = createTurns();
  function* failing(): Generator<void, number> {
    yield;
    throw new Error("no");
  }
  function* working(): Generator<void, number> {
    yield;
    return 1;
  }
  const [failed, worked] = await Promise.allSettled([turns.run(failing()), turns.run(working())]);
  expect([failed?.status, worked?.status]).toEqual(["rejected", "fulfilled"]);
});

test("the result of the last work is kept for nobody", async () => {
  const turns = createTurns();
  function* large(): Generator<void, string> {
    yield;
    return "x".repeat(50_000_000);
  }
  const before = heapBytes();
  expect((await turns.run(large())).length).toBe(50_000_000);
  await nextTurn();
  const taken = heapBytes() - before;
  // Which keeps the turns themselves until here.
  await turns.run(large());
  expect(taken).toBeLessThan(25_000_000);
});
