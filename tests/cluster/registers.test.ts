import { expect, test } from "bun:test";
import { isLinearizable, type RegisterOperation } from "../support/cluster/drill/registers.ts";

const operation = (
  kind: RegisterOperation["kind"],
  value: number,
  [startMs, endMs]: readonly [number, number],
  { expected = 0, isDone = null as boolean | null } = {},
): RegisterOperation => ({ kind, value, expected, isDone, startMs, endMs });
const NEVER = Number.POSITIVE_INFINITY;

test("[CLU120] registers: a history is right if some order explains it, and else wrong", () => {
  const write = operation("write", 1, [0, 10]);
  expect(isLinearizable([write, operation("read", 1, [11, 12])], 0)).toBe(true);
  expect(isLinearizable([write, operation("read", 0, [5, 12])], 0)).toBe(true);
  expect(isLinearizable([write, operation("read", 0, [11, 12])], 0)).toBe(false);
  // Two reads one after the other do not go back.
  expect(isLinearizable([write, operation("read", 1, [1, 2]), operation("read", 0, [3, 4])], 0)).toBe(false);
  // An exchange that was done has found its value, and one that was not has not.
  expect(isLinearizable([operation("exchange", 2, [0, 1], { isDone: true })], 0)).toBe(true);
  expect(isLinearizable([operation("exchange", 2, [0, 1], { isDone: false })], 0)).toBe(false);
  const twice = [1, 2].map((value) => operation("exchange", value, [0, 9], { isDone: true }));
  expect(isLinearizable(twice, 0)).toBe(false);
});

test("[CLU120] registers: what is not known takes effect at any time after its start, or never", () => {
  const unknown = operation("write", 1, [5, NEVER]);
  expect(isLinearizable([unknown, operation("read", 0, [100, 101]), operation("read", 1, [102, 103])], 0)).toBe(true);
  expect(isLinearizable([unknown, operation("read", 1, [1, 2])], 0)).toBe(false);
  expect(isLinearizable([unknown, operation("read", 1, [6, 7]), operation("read", 0, [8, 9])], 0)).toBe(false);
  expect(isLinearizable([operation("exchange", 3, [0, NEVER], { expected: 7 }), operation("read", 0, [1, 2])], 0)).toBe(
    true,
  );
});
