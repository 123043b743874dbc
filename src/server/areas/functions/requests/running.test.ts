import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/index.ts";
import { RUNNING_MAX } from "../limits.ts";
import { createRunning } from "./running.ts";

test("[FN11] what takes too long is given up, and counts until it ends", async () => {
  const clock = testClock();
  const running = createRunning(clock);
  const ends: (() => void)[] = [];
  const fail = (cause: unknown) => String(cause);
  const start = (seconds: number) =>
    running.within(new Promise<string>((resolve) => ends.push(() => resolve("done"))), seconds, fail);
  const slow = start(60);
  const fast = start(2);
  const done = start(2);
  ends[2]?.();
  await done;
  await clock.advance(4_000);
  expect(await fast).toContain("There was no answer within 2 s");
  const others = Array.from({ length: RUNNING_MAX - 2 }, () => start(60));
  expect(() => running.checkRoom()).toThrow("may run at once");
  ends[1]?.();
  await Promise.resolve();
  running.checkRoom();
  for (const end of ends) end();
  await Promise.all([slow, ...others]);
  running.stop();
});
