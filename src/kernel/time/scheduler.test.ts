import { expect, test } from "bun:test";
import { countTurns } from "../../../tests/support/event-loop.ts";
import { heapBytes } from "../../../tests/support/heap.ts";
import { random, testSeed } from "../../../tests/support/random.ts";
import { nextTurn, Scheduler } from "./scheduler.ts";

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

/** Creates work that ends on demand; `began` notes the order. */
function world(limits: { waitingMax?: number; waitingPerCallerMax?: number } = {}) {
  const scheduler = new Scheduler({ waitingMax: 100, waitingPerCallerMax: 50, ...limits });
  const began: string[] = [];
  const refused: string[] = [];
  let end = (): void => {};
  const add = (sharer: string, name = sharer): void => {
    const work = () => {
      began.push(name);
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    scheduler.inTurn(work, { caller: sharer }).catch(() => refused.push(name));
  };
  const step = async (): Promise<void> => {
    end();
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  return { add, step, began, refused };
}

test("[AU107] a caller with many waiting hashes takes turns with a caller with one", async () => {
  const { add, step, began } = world();
  for (let index = 0; index < 30; index++) add("flood", `flood ${index}`);
  add("ann");
  add("bob");
  for (let count = 0; count < 6; count++) await step();
  expect(began).toEqual(["flood 0", "flood 1", "ann", "bob", "flood 2", "flood 3", "flood 4"]);
});

test("[AU270] once enough wait, further ones run at once, and the turns stay", async () => {
  const scheduler = new Scheduler({ further: { atOnce: 1, waitingMin: 2 } });
  const ends: (() => void)[] = [];
  const began: string[] = [];
  let runningMost = 0;
  let running = 0;
  const add = (name: string) =>
    scheduler.inTurn(
      async () => {
        began.push(name);
        runningMost = Math.max(runningMost, ++running);
        await new Promise<void>((resolve) => ends.push(resolve));
        running--;
      },
      { caller: name.charAt(0) },
    );
  const all = [add("a1"), add("a2")];
  await settle();
  expect(began).toEqual(["a1"]);
  all.push(add("a3"), add("b1"), add("b2"));
  await settle();
  expect(began).toEqual(["a1", "a2"]);
  while (ends.length > 0) {
    ends.shift()?.();
    await settle();
  }
  await Promise.all(all);
  expect(began).toEqual(["a1", "a2", "a3", "b1", "b2"]);
  expect(runningMost).toBe(2);
  const later = add("c1");
  await settle();
  expect(began.at(-1)).toBe("c1");
  ends.shift()?.();
  await later;
});

test("[AU107] a caller's waiting hashes are bounded; over the total bound, the caller with the most loses one", async () => {
  const { add, step, began, refused } = world({ waitingMax: 10, waitingPerCallerMax: 8 });
  for (let index = 0; index < 12; index++) add("flood", `flood ${index}`);
  await step();
  expect(refused).toEqual(["flood 9", "flood 10", "flood 11"]);
  for (const name of ["a", "b", "c", "d", "e"]) add(name);
  for (let count = 0; count < 20; count++) await step();
  expect(began.slice(0, 7)).toEqual(["flood 0", "flood 1", "flood 2", "a", "b", "c", "d"]);
  expect(began).toContain("e");
  expect(refused).toContain("flood 8");
});

test("short pieces of work that follow one another take no more of a turn than a long one", async () => {
  let now = 0;
  const turns = new Scheduler({ now: () => now });
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
  const turns = new Scheduler({ now: () => now });
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
  // A result that never comes blocks nothing.
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
  const turns = new Scheduler();
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
  const turns = new Scheduler();
  function* large(): Generator<void, string> {
    yield;
    return "x".repeat(50_000_000);
  }
  const before = heapBytes();
  expect((await turns.run(large())).length).toBe(50_000_000);
  await nextTurn();
  const taken = heapBytes() - before;
  // Keeps `turns` reachable until here.
  await turns.run(large());
  expect(taken).toBeLessThan(25_000_000);
});

test("one waiting piece of work continues in each turn of the event loop, in order", async () => {
  const scheduler = new Scheduler();
  const begin = () => scheduler.pace();
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
  const scheduler = new Scheduler({ now: () => now });
  const begin = () => scheduler.pace();
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
  const pace = new Scheduler({ now: () => now }).pace();
  now = 3;
  expect(pace.isDue()).toBe(false);
  now = 4;
  expect(pace.isDue()).toBe(true);
  await pace.next();
  expect(pace.isDue()).toBe(false);
});

/** An event loop in simulated time: a turn runs the work scheduled for it, and then the promises that it has settled. */
function simulatedLoop() {
  let now = 0;
  let due: (() => void)[] = [];
  return {
    now: () => now,
    spend(ms: number) {
      now += ms;
    },
    nextTurn: (work: () => void) => void due.push(work),
    /** Runs a turn. false: nothing is due. */
    async turn(): Promise<boolean> {
      const works = due;
      due = [];
      for (const work of works) {
        work();
        await settle();
      }
      return works.length > 0;
    },
  };
}

test("in simulated time, a thousand pieces of work keep the budget of each turn, take turns by caller, and all end", async () => {
  const chance = random(testSeed(7));
  const loop = simulatedLoop();
  const scheduler = new Scheduler({ ...loop, turnMs: 4, waitingMax: 600 });
  const outcomes = { done: 0, refused: 0, aborted: 0 };
  const ended: string[] = [];
  function* work(caller: string, steps: number): Generator<void, void> {
    for (let step = 0; step < steps; step++) {
      loop.spend(chance.next() * 2);
      yield;
    }
    ended.push(caller);
  }
  const aborts: AbortController[] = [];
  const all = Array.from({ length: 1_000 }, (_, index) => {
    const caller = index < 900 ? "flood" : `caller ${index % 10}`;
    const abort = new AbortController();
    if (index % 50 === 1) aborts.push(abort);
    return scheduler.run(work(caller, 1 + chance.below(5)), { caller, signal: abort.signal }).then(
      () => outcomes.done++,
      (cause: Error) => outcomes[cause.message.startsWith("too much") ? "refused" : "aborted"]++,
    );
  });
  for (const abort of aborts) abort.abort(new Error("gone"));
  await settle();
  for (;;) {
    const before = loop.now();
    if (!(await loop.turn())) break;
    // The last step of a turn may begin just before its end.
    expect(loop.now() - before).toBeLessThan(4 + 2);
  }
  await Promise.all(all);
  expect(outcomes.done + outcomes.refused + outcomes.aborted).toBe(1_000);
  expect(outcomes.refused).toBeGreaterThan(300);
  expect(outcomes.aborted).toBeGreaterThan(0);
  // Of eleven callers, each has one piece done in eleven turns: the ten small ones are done early.
  const lastOfOthers = ended.findLastIndex((caller) => caller !== "flood");
  expect(ended.filter((caller) => caller !== "flood").length).toBeGreaterThan(90);
  expect(lastOfOthers).toBeLessThan(130);
});

test("work whose signal has aborted does not begin, and work under way ends between two steps", async () => {
  const scheduler = new Scheduler();
  const abort = new AbortController();
  let isClosed = false;
  function* steps(): Generator<void, void> {
    try {
      for (;;) {
        abort.abort(new Error("gone"));
        yield;
      }
    } finally {
      isClosed = true;
    }
  }
  await expect(scheduler.run(steps(), { signal: abort.signal })).rejects.toThrow("gone");
  expect(isClosed).toBe(true);
  await expect(scheduler.inTurn(() => 1, { signal: abort.signal })).rejects.toThrow("gone");
  expect(await scheduler.inTurn(() => 1)).toBe(1);
});
