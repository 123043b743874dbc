import { expect, test } from "bun:test";
import { FairQueue } from "./fair-queue.ts";

const job = (caller: string, name: string, places = 1) => ({ caller, name, places });
const idle = { running: () => 0, mayRun: () => true };

test("[DB121] callers take turns, however many jobs one of them has waiting", () => {
  const queue = new FairQueue<ReturnType<typeof job>>(10);
  for (const name of ["a1", "a2", "a3"]) queue.add(job("a", name));
  for (const name of ["b1", "b2"]) queue.add(job("b", name));
  const order = Array.from({ length: 6 }, () => queue.take(idle)?.name);
  expect(order).toEqual(["a1", "b1", "a2", "b2", "a3", undefined]);
  expect(queue.size).toBe(0);
});

test("[DB121] the caller with the fewest running jobs comes first, and one at its share waits", () => {
  const queue = new FairQueue<ReturnType<typeof job>>(10);
  queue.add(job("busy", "x"));
  queue.add(job("idle", "y"));
  const running = (caller: string) => (caller === "busy" ? 2 : 0);
  expect(queue.take({ running, mayRun: () => true })?.name).toBe("y");
  expect(queue.take({ running, mayRun: ({ caller }) => running(caller) < 2 })).toBeNull();
  expect(queue.take({ running, mayRun: () => true })?.name).toBe("x");
});

test("[DB127] a job that may not run yet holds up none behind it", () => {
  const queue = new FairQueue<ReturnType<typeof job>>(10);
  for (const name of ["a1", "a2", "a3"]) queue.add(job("a", name));
  const waitsFor = { running: () => 0, mayRun: ({ name }: { name: string }) => name !== "a1" };
  expect([queue.take(waitsFor)?.name, queue.take(waitsFor)?.name, queue.take(waitsFor)]).toEqual(["a2", "a3", null]);
  expect(queue.take(idle)?.name).toBe("a1");
});

test("[DB121] a full queue refuses the newest job of the caller with the most places, the newcomer's own included", () => {
  const queue = new FairQueue<ReturnType<typeof job>>(4);
  for (const name of ["a1", "a2", "a3"]) expect(queue.add(job("a", name))).toEqual([]);
  expect(queue.add(job("b", "b1"))).toEqual([]);
  expect(queue.add(job("c", "c1")).map(({ name }) => name)).toEqual(["a3"]);
  expect(queue.add(job("a", "a4")).map(({ name }) => name)).toEqual(["a4"]);
  expect(queue.add(job("d", "d1", 3)).map(({ name }) => name)).toEqual(["d1"]);
  expect(queue.size).toBe(4);
});

test("[DB121] a withdrawn job releases its place", () => {
  const queue = new FairQueue<ReturnType<typeof job>>(2);
  const [first, second] = [job("a", "a1"), job("a", "a2")];
  queue.add(first);
  queue.add(second);
  queue.remove(first);
  queue.remove(first);
  expect(queue.size).toBe(1);
  expect(queue.add(job("b", "b1"))).toEqual([]);
  expect(queue.drain().map(({ name }) => name)).toEqual(["a2", "b1"]);
});
