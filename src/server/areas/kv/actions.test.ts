import { expect, test } from "bun:test";
import { endOfPrefix } from "../../../kernel/records/text-match.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { Action, decodeCursor, encodeCursor } from "./actions.ts";

test("[KV6] a key has 1 to 512 code points of well-formed Unicode", () => {
  const actions = createParser(Action);
  const problemOf = (key: string | number) => actions.problemsOf({ action: "get", key })?.["key"]?.code;
  expect(problemOf("\u{1f600}".repeat(512))).toBeUndefined();
  expect(problemOf("\u{1f600}".repeat(513))).toBe("too_long");
  expect(problemOf("")).toBe("required");
  expect(problemOf("a\ud800")).toBe("invalid_value");
  expect(problemOf(7)).toBe("invalid_type");
});

const inByteOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

test("[KV4] the end of a prefix sorts after everything that begins with it, and before everything that follows", () => {
  const keys = ["a", "a\u{10ffff}", "a\u{10ffff}z", "ab", "b", "é", "\ud7ff", "\ue000", "\ue000x", "\u{10ffff}", "z"];
  for (const prefix of ["a", "a\u{10ffff}", "\ud7ff", "é", "zz", "\u{10ffff}"]) {
    const end = endOfPrefix(prefix);
    for (const key of keys) {
      const isInside = inByteOrder(key, prefix) >= 0 && (end === null || inByteOrder(key, end) < 0);
      expect([prefix, key, isInside]).toEqual([prefix, key, key.startsWith(prefix)]);
    }
  }
  expect(endOfPrefix("")).toBeNull();
  expect(endOfPrefix("\u{10ffff}\u{10ffff}")).toBeNull();
});

test("[KV5] a cursor encodes any key, and no other text is accepted", () => {
  for (const key of ["a", "a/b c", "é\0\u{1f600}", "x".repeat(512)]) expect(decodeCursor(encodeCursor(key))).toBe(key);
  for (const wrong of ["", "a", "%%%", "YQ==", "/w"]) expect(() => decodeCursor(wrong)).toThrow("cursor must be");
});
