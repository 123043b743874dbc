import { expect, test } from "bun:test";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { isTextWithinDepth, jsonFault } from "./json.ts";

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
    expect([text.slice(0, 80), isTextWithinDepth(text)]).toEqual([
      text.slice(0, 80),
      jsonFault(JSON.parse(text)) === null,
    ]);
  }
});

test("[HT3] an endless text is checked as it arrives", () => {
  expect(isTextWithinDepth('"[[[[')).toBe(true);
  expect(isTextWithinDepth('{"a\\')).toBe(true);
  expect(isTextWithinDepth("[".repeat(5_000_000))).toBe(false);
});

test("[HT3] JSON values that cannot be stored are found at their position", () => {
  const fault = (text: string) => {
    const found = jsonFault(JSON.parse(text));
    return found === null ? null : [found.path, found.message.slice(0, 11)];
  };
  for (const text of ['{"a":[1,{"b":"\\ud83d\\ude00"}]}', "1e308", "null", nested(JSON_DEPTH_MAX)])
    expect(fault(text)).toBeNull();
  expect(fault("1e400")).toEqual(["", "is a number"]);
  expect(fault('{"a":[1,{"b":-1e400}]}')).toEqual(["a.1.b", "is a number"]);
  expect(fault('{"a":["\\ud83d"]}')).toEqual(["a.0", "holds half "]);
  expect(fault('{"a":{"\\ude00":1}}')).toEqual(["a", "holds half "]);
  expect(fault(`{"a":${nested(JSON_DEPTH_MAX)}}`)).toEqual(["", "nests deepe"]);
});
