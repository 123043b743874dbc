import { expect, test } from "bun:test";
import { lowerAscii } from "./text-match.ts";

test("[TB400] [TB401] A–Z become a–z in texts of any length, and every other character stays", () => {
  const every = "\ufeff\0 AZ[`az{ÄÉß İ \u{1d400}\u{10ffff}";
  const lower = "\ufeff\0 az[`az{ÄÉß İ \u{1d400}\u{10ffff}";
  for (const count of [0, 1, 7, 8, 9, 10, 1_000]) {
    expect(lowerAscii(every.repeat(count))).toBe(lower.repeat(count));
    expect(lowerAscii(lower.repeat(count))).toBe(lower.repeat(count));
  }
});
