import { expect, test } from "bun:test";
import { Causes } from "./causes.ts";
import { CAUSES_MAX, RUNS_PER_CAUSE_MAX } from "./limits.ts";

test("[TG22] each cause has its own count, over all of its runs, and what is refused does not count", () => {
  const causes = new Causes();
  for (let count = 0; count < RUNS_PER_CAUSE_MAX / 2; count++) causes.count("first", 2);
  expect(() => causes.count("first", 1)).toThrow("looks endless");
  expect(() => causes.count("second", RUNS_PER_CAUSE_MAX + 1)).toThrow();
  causes.count("second", RUNS_PER_CAUSE_MAX);
  expect(() => causes.count("second", 1)).toThrow();
});

test("[TG22] a cause that goes on is counted on, whatever others come", () => {
  const causes = new Causes();
  for (let count = 0; count < RUNS_PER_CAUSE_MAX; count++) {
    causes.count("first", 1);
    for (let other = 0; other < 3; other++) causes.count(`${count} ${other}`, 1);
  }
  expect(3 * RUNS_PER_CAUSE_MAX).toBeGreaterThan(CAUSES_MAX);
  expect(() => causes.count("first", 1)).toThrow();
});
