import { expect, test } from "bun:test";
import { MessageRate } from "./message-rate.ts";

test("[RT7] a second's messages may come at once, and the rest as fast as the bucket fills", () => {
  const rate = new MessageRate(10, 0);
  const taken = (now: number, tries: number) =>
    Array.from({ length: tries }, () => rate.take(now)).filter(Boolean).length;
  expect(taken(0, 20)).toBe(10);
  expect(taken(300, 20)).toBe(3);
  expect(taken(200, 20)).toBe(0);
  expect(taken(60_000, 20)).toBe(10);
});
