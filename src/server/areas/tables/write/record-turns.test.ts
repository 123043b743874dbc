import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import { RecordTurns } from "./record-turns.ts";

const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  let isSettled = false;
  void promise.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  return isSettled;
};

test("[TB71] turns come in order, and writes without a shared record do not wait", async () => {
  const turns = new RecordTurns(testClock());
  const first = await turns.take(new Set(["a", "b"]));
  const second = turns.take(new Set(["b", "c"]));
  const third = turns.take(new Set(["c", "a"]));
  const other = await turns.take(new Set(["d"]));
  expect([await settled(second), await settled(third)]).toEqual([false, false]);
  expect([other.covers(new Set(["d"])), other.covers(new Set(["a"]))]).toEqual([true, false]);
  first.release();
  expect([await settled(second), await settled(third)]).toEqual([true, false]);
  (await second).release();
  expect(await settled(third)).toBe(true);
});

test("[TB71] a turn lasts at most ten seconds", async () => {
  const clock = testClock();
  const turns = new RecordTurns(clock);
  const first = await turns.take(new Set(["a"]));
  const second = turns.take(new Set(["a"]));
  clock.advance(9_999);
  expect(await settled(second)).toBe(false);
  clock.advance(1);
  expect(await settled(second)).toBe(true);
  first.release();
  (await second).release();
  expect(clock.waiting).toBe(0);
});

test("[TB71] at most a thousand writes have or await a record's turn", async () => {
  const turns = new RecordTurns(testClock());
  const waiting = Array.from({ length: 1_000 }, () => turns.take(new Set(["a"])));
  await expect(turns.take(new Set(["b", "a"]))).rejects.toMatchObject({ status: 503 });
  for (const turn of waiting) (await turn).release();
  expect(await settled(turns.take(new Set(["a", "b"])))).toBe(true);
});
