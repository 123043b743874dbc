import { expect, test } from "bun:test";
import { createParser } from "../../../kernel/schema/parser.ts";
import { Action } from "./actions.ts";

test("[KV6] a key has 1 to 512 code points of well-formed Unicode", () => {
  const actions = createParser(Action);
  const problemOf = (key: string | number) => actions.problemsOf({ action: "get", key })?.["key"]?.code;
  expect(problemOf("\u{1f600}".repeat(512))).toBeUndefined();
  expect(problemOf("\u{1f600}".repeat(513))).toBe("too_long");
  expect(problemOf("")).toBe("required");
  expect(problemOf("a\ud800")).toBe("invalid_value");
  expect(problemOf(7)).toBe("invalid_type");
});
