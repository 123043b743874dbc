import { expect, test } from "bun:test";
import { lowerAscii } from "./text-match.ts";

test("[TB400] A to Z alone are put into lower case, in texts of any length", () => {
  const parts: [text: string, lower: string][] = [
    ["aBcZ", "abcz"],
    ["@[`{É", "@[`{É"],
    ["İΣ\u{1f600}X", "İΣ\u{1f600}x"],
    ["\ud800Q", "\ud800q"],
    ["none", "none"],
  ];
  for (const [text, lower] of parts) {
    for (const times of [1, 1_000]) expect(lowerAscii(text.repeat(times))).toBe(lower.repeat(times));
  }
});
