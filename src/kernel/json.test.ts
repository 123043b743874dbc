import { expect, test } from "bun:test";
import { isTextWithinDepth, isWithinDepth, JSON_DEPTH_MAX } from "./json.ts";

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

test("[HT3] the depth of a text is that of its value", () => {
  const texts = [
    ...[1, JSON_DEPTH_MAX, JSON_DEPTH_MAX + 1].map(nested),
    `{"a":${nested(JSON_DEPTH_MAX - 1)}}`,
    `{"a":${nested(JSON_DEPTH_MAX)}}`,
    JSON.stringify({ text: "[".repeat(1_000) }),
    JSON.stringify({ text: `\\"${"{".repeat(1_000)}`, next: ["\\\\", "[[", { '"[': "]" }] }),
    JSON.stringify(Array.from({ length: 1_000 }, () => ({ a: [{}] }))),
    '""',
    "1",
  ];
  for (const text of texts) {
    expect([text.slice(0, 80), isTextWithinDepth(text)]).toEqual([text.slice(0, 80), isWithinDepth(JSON.parse(text))]);
  }
});

test("[HT3] text without an end is judged as far as it goes", () => {
  expect(isTextWithinDepth('"[[[[')).toBe(true);
  expect(isTextWithinDepth('{"a\\')).toBe(true);
  expect(isTextWithinDepth("[".repeat(5_000_000))).toBe(false);
});
