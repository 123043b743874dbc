import { expect, test } from "bun:test";
import { createTurns } from "./hash-turns.ts";

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

/** Work that ends when it is told to; `began` notes the order. */
function world(limits: { waitingMax?: number; waitingPerSharerMax?: number } = {}) {
  const inTurn = createTurns({ atOnceMax: 1, waitingMax: 100, waitingPerSharerMax: 50, ...limits });
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
    inTurn(sharer, work).catch(() => refused.push(name));
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
  const further = { atOnceMax: 1, waitingMin: 2 };
  const inTurn = createTurns({ atOnceMax: 1, waitingMax: 100, waitingPerSharerMax: 50, further });
  const ends: (() => void)[] = [];
  const began: string[] = [];
  let runningMost = 0;
  let running = 0;
  const add = (name: string) =>
    inTurn(name.charAt(0), async () => {
      began.push(name);
      runningMost = Math.max(runningMost, ++running);
      await new Promise<void>((resolve) => ends.push(resolve));
      running--;
    });
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
  const { add, step, began, refused } = world({ waitingMax: 10, waitingPerSharerMax: 8 });
  for (let index = 0; index < 12; index++) add("flood", `flood ${index}`);
  await step();
  expect(refused).toEqual(["flood 9", "flood 10", "flood 11"]);
  for (const name of ["a", "b", "c", "d", "e"]) add(name);
  for (let count = 0; count < 20; count++) await step();
  expect(began.slice(0, 7)).toEqual(["flood 0", "flood 1", "flood 2", "a", "b", "c", "d"]);
  expect(began).toContain("e");
  expect(refused).toContain("flood 8");
});
