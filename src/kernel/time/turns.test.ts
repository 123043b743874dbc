import { expect, test } from "bun:test";
import { createTurns } from "./turns.ts";

/** Counts the turns of the event loop until it is stopped. */
function countTurns(): { readonly turn: number; stop(): void } {
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  return {
    get turn() {
      return turn;
    },
    stop() {
      isOver = true;
    },
  };
}

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
