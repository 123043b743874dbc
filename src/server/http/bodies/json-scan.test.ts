import { expect, test } from "bun:test";
import type { AppError } from "../../../kernel/errors.ts";
import { BODY_NAMES_MAX, BODY_VALUES_MAX } from "../limits.ts";
import { JsonScan } from "./json-scan.ts";

/** Returns the status of the refusal, 200 without one; `size` is the number of bytes per chunk. */
function scan(text: string, size = text.length, areValuesCounted = true): number {
  const scanning = new JsonScan({ areValuesCounted });
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length; at += size) scanning.take(bytes.subarray(at, at + size));
    return 200;
  } catch (cause) {
    // `take` throws nothing else.
    return (cause as AppError).status;
  }
}

test("[HT115] what is in strings is not counted, wherever the parts are cut", () => {
  const text = JSON.stringify({ 'a"\\': ["[".repeat(100), '\\"{[,:', "\\\\", { b: "}]" }] });
  for (let size = 1; size <= text.length; size++) expect([size, scan(text, size)]).toEqual([size, 200]);
  expect(scan(`{"a":"${"[,:".repeat(400_000)}"}`, 1_000)).toBe(200);
});

test("[HT115] the end of a long string is found behind any escapes, wherever the parts are cut", () => {
  const deep = "[".repeat(65);
  for (const length of [60, 63, 64, 65, 200]) {
    for (const end of ["", '\\"', "\\", '\\\\"', "é\\", `${'\\"'.repeat(40)}x`]) {
      const text = JSON.stringify(`${"a".repeat(length)}${end}${"b".repeat(length)}${end}`);
      for (const size of [1, 7, 64, 65, text.length * 2]) {
        expect([text, size, scan(`[${text},"${deep}"]`, size)]).toEqual([text, size, 200]);
        expect([text, size, scan(`[${text},${deep}]`, size)]).toEqual([text, size, 400]);
      }
    }
  }
});

test("[HT115] names and values are counted for users, depth for everybody", () => {
  const values = (count: number) => `[${"1,".repeat(count)}1]`;
  expect(scan(values(BODY_VALUES_MAX - 1), 4_096)).toBe(200);
  expect(scan(values(BODY_VALUES_MAX), 4_096)).toBe(413);
  expect(scan(values(BODY_VALUES_MAX), 4_096, false)).toBe(200);
  const names = (count: number) => `[${'{"a":1},'.repeat(count - 1)}{"a":1}]`;
  expect(scan(names(BODY_NAMES_MAX), 4_096)).toBe(200);
  expect(scan(names(BODY_NAMES_MAX + 1), 4_096)).toBe(413);
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  for (const areValuesCounted of [true, false]) {
    expect(scan(deep(64), 7, areValuesCounted)).toBe(200);
    expect(scan(deep(65), 7, areValuesCounted)).toBe(400);
  }
});
