import { expect, test } from "bun:test";
import { testClock } from "../../../../tests/support/clock.ts";
import { IDLE_MS, IDLE_SIGN_MS, SIGN_MS } from "./limits.ts";
import { giveSigns } from "./signs.ts";

test("[WK62] a worker without requests gives back memory once, and fewer signs until the next request", () => {
  const clock = testClock();
  let requests = 0;
  let rests = 0;
  const given: number[] = [];
  const end = giveSigns(clock, {
    requests: () => requests,
    give: ({ signs }) => void given.push(signs),
    rest: () => void rests++,
    now: () => clock.now(),
  });
  clock.advance(IDLE_MS - 1);
  expect([rests, given.length]).toEqual([0, IDLE_MS / SIGN_MS]);
  clock.advance(1);
  expect(rests).toBe(1);
  given.length = 0;
  clock.advance(10 * IDLE_SIGN_MS);
  expect([rests, given.length]).toEqual([1, 10]);
  requests += 1;
  clock.advance(IDLE_SIGN_MS);
  given.length = 0;
  clock.advance(10 * SIGN_MS);
  expect(given).toHaveLength(10);
  clock.advance(IDLE_MS);
  expect(rests).toBe(2);
  end();
  given.length = 0;
  clock.advance(IDLE_MS);
  expect(given).toEqual([]);
});
