import { expect, test } from "bun:test";
import { createSystemClock, systemClock } from "./clock.ts";

test("a delay longer than the runtime's timers allow does not end early", async () => {
  const warnings: string[] = [];
  const note = (warning: Error): void => void warnings.push(warning.name);
  process.on("warning", note);
  let isDone = false;
  const cancel = systemClock.after(2 ** 31, () => {
    isDone = true;
  });
  await Bun.sleep(30);
  cancel();
  process.off("warning", note);
  expect({ isDone, warnings }).toEqual({ isDone: false, warnings: [] });
});

test("a wait in steps ends once, on time, and can be cancelled in any step", async () => {
  const clock = createSystemClock(20);
  const startedAt = performance.now();
  const times: number[] = [];
  clock.after(70, () => times.push(performance.now() - startedAt));
  const cancel = clock.after(70, () => times.push(Number.NaN));
  await Bun.sleep(35);
  cancel();
  await Bun.sleep(120);
  expect(times.length).toBe(1);
  expect(times[0]).toBeGreaterThanOrEqual(69);
});
