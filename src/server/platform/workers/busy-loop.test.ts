import { expect, test } from "bun:test";
import { BusyLoop, busyMs } from "./busy-loop.ts";

const LOOK_MS = 2_000;

/** Looks at a loop that has been busy for these shares of each interval. Returns what each look finds. */
function looks(loop: BusyLoop, shares: readonly number[], { from = 0 }: { from?: number } = {}): (number | null)[] {
  let busy = 0;
  return [0, ...shares].map((share, index) => {
    busy += share * LOOK_MS;
    return loop.look(from + index * LOOK_MS, busy);
  });
}

test("[WK60] the share is that of the last ten seconds, and unknown before", () => {
  expect(looks(new BusyLoop(), [1, 1, 1, 1, 1, 0, 0])).toEqual([null, null, null, null, null, 1, 0.8, 0.6]);
});

test("[WK60] looks that come late count by their time", () => {
  const loop = new BusyLoop();
  loop.look(0, 0);
  loop.look(9_000, 9_000);
  // Until the look at 9 s is ten seconds old, the one at 0 begins.
  expect(loop.look(16_000, 9_000)).toBe(9 / 16);
  expect(loop.look(19_000, 9_000)).toBe(0);
});

test("[WK60] what was before another worker has started does not count", () => {
  const loop = new BusyLoop();
  looks(loop, [1, 1, 1, 1, 1]);
  loop.restart();
  expect(looks(loop, [0, 0, 0, 0, 0], { from: 20_000 }).at(-1)).toBe(0);
});

test("[WK60] the time of the own thread grows with its work", () => {
  const before = busyMs();
  const until = process.cpuUsage().user + 20_000;
  while (process.cpuUsage().user < until);
  expect(busyMs() - before).toBeGreaterThan(5);
});
