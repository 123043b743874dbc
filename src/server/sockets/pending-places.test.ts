import { expect, test } from "bun:test";
import { settle, testClock } from "../../../tests/support/clock.ts";
import { PLACE_WAITING_PER_CLIENT_MAX } from "./limits.ts";
import { PendingPlaces, type Release } from "./pending-places.ts";

const never = new AbortController().signal;

test("[SK4] waiting upgrades get the next places, in order of arrival", async () => {
  const places = new PendingPlaces(testClock(), 2);
  const [first, second] = [await places.take("a", never), await places.take("a", never)];
  const order: number[] = [];
  const waiting = [1, 2, 3].map(async (n) => {
    const release = await places.take("a", never);
    order.push(n);
    return release;
  });
  await settle();
  expect(order).toEqual([]);
  first();
  first();
  await settle();
  expect(order).toEqual([1]);
  second();
  (await waiting[0])?.();
  await settle();
  expect(order).toEqual([1, 2, 3]);
  for (const release of await Promise.all(waiting)) release();
  const again = [await places.take("a", never), await places.take("a", never)];
  expect(again.length).toBe(2);
});

test("[SK4] 429 after two seconds, at once where a hundred wait; each client network has its own places", async () => {
  const clock = testClock();
  const places = new PendingPlaces(clock, 1);
  await places.take("a", never);
  const outcomes: unknown[] = [];
  const leave = new AbortController();
  const note = async (place: Release | Promise<Release>): Promise<void> => {
    outcomes.push(await Promise.resolve(place).catch((cause: { status: number }) => cause.status));
  };
  void note(places.take("a", leave.signal));
  for (let count = 1; count < PLACE_WAITING_PER_CLIENT_MAX; count++) void note(places.take("a", never));
  expect(() => places.take("a", never)).toThrow("At most 1 connections");
  leave.abort();
  await settle();
  expect(outcomes).toEqual([408]);
  expect(typeof (await places.take("b", never))).toBe("function");
  clock.advance(1_999);
  await settle();
  expect(outcomes.length).toBe(1);
  clock.advance(1);
  await settle();
  expect(outcomes).toEqual([408, ...Array(PLACE_WAITING_PER_CLIENT_MAX - 1).fill(429)]);
  expect(clock.waiting).toBe(0);
});
