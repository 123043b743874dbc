import { expect, test } from "bun:test";
import { TokenBucket } from "./token-bucket.ts";

test("[SK13] the message rate is a bucket that refills evenly", () => {
  const rate = new TokenBucket({ perSecond: 100, atOnce: 100 }, 0);
  const taken = (now: number) => Array.from({ length: 150 }, () => rate.take(1, now)).filter(Boolean).length;
  expect(taken(0)).toBe(100);
  expect(taken(100)).toBe(10);
  // A clock that is set back gives nothing and takes nothing.
  expect(taken(50)).toBe(0);
  expect(taken(1_050)).toBe(100);
});

test("[SK1] a message longer than what is left is not counted", () => {
  const chars = new TokenBucket({ perSecond: 10, atOnce: 100 }, 0);
  expect([chars.take(80, 0), chars.take(80, 0), chars.take(20, 0), chars.take(1, 0)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect(chars.take(20, 2_000)).toBe(true);
});
