import { expect, test } from "bun:test";
import { Type } from "typebox";
import type { JsonValue } from "../json/json.ts";
import { createParser } from "./parser.ts";
import { AnyObject, nullable, optional, refine } from "./types.ts";

const codes = (parser: { problemsOf(value: JsonValue): object | null }, value: JsonValue): Record<string, string> =>
  Object.fromEntries(Object.entries(parser.problemsOf(value) ?? {}).map(([name, { code }]) => [name, code]));

const Even = refine(
  Type.Integer(),
  (value) => value % 2 === 0,
  (name) => ({ code: "check_failed", message: `${name} must be even` }),
);
const parser = createParser(
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 3 }),
    age: optional(Type.Integer({ minimum: 0, maximum: 200 })),
    role: Type.Optional(Type.Union([Type.Literal("admin"), Type.Literal("user")])),
    even: Type.Optional(Even),
    tags: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 2 })),
    labels: Type.Optional(Type.Record(Type.String(), Type.String(), { maxProperties: 2 })),
    inner: Type.Optional(Type.Object({ on: Type.Boolean(), at: nullable(Type.String()) })),
    free: Type.Optional(AnyObject),
  }),
);

test("[HT120] a value that matches its schema passes unchanged", () => {
  const value = { name: "a", age: null, role: "user", even: 2, tags: ["x"], labels: { a: "b" }, free: { any: [1] } };
  expect(parser.parse(value)).toBe(value as never);
  expect(parser.problemsOf({ name: "\u{1f600}\u{1f600}\u{1f600}" })).toBeNull();
});

test("[HT120] each field at fault is named by its path, with its code", () => {
  const wrong: [JsonValue, Record<string, string>][] = [
    [{}, { name: "required" }],
    [{ name: null }, { name: "required" }],
    [{ name: "" }, { name: "required" }],
    [{ name: 5 }, { name: "invalid_type" }],
    [{ name: "long" }, { name: "too_long" }],
    [{ name: "\ud800" }, { name: "invalid_value" }],
    [{ name: "a", age: -1 }, { age: "too_small" }],
    [{ name: "a", age: 201 }, { age: "too_large" }],
    [{ name: "a", age: 1.5 }, { age: "invalid_type" }],
    [{ name: "a", role: "nobody" }, { role: "invalid_value" }],
    [{ name: "a", even: 3 }, { even: "check_failed" }],
    [{ name: "a", even: "3" }, { even: "invalid_type" }],
    [{ name: "a", tags: [] }, { tags: "too_short" }],
    [{ name: "a", tags: ["a", "b", "c"] }, { tags: "too_long" }],
    [{ name: "a", tags: ["a", 5] }, { "tags.1": "invalid_type" }],
    [
      { name: "a", labels: { a: 5, b: null } },
      { "labels.a": "invalid_type", "labels.b": "invalid_type" },
    ],
    [{ name: "a", labels: { a: "x", b: "x", c: "x" } }, { labels: "too_long" }],
    [{ name: "a", inner: { at: "b" } }, { "inner.on": "required" }],
    [{ name: "a", inner: { on: true, at: null, off: 1 } }, { "inner.off": "unknown_field" }],
    [{ name: "a", free: [] }, { free: "invalid_type" }],
    [
      { other: 1, another: 2 },
      { name: "required", other: "unknown_field", another: "unknown_field" },
    ],
    [JSON.parse('{ "name": "a", "__proto__": 1 }'), { __proto__: "unknown_field" } as never],
    [{ name: "a", toString: 1 } as never, { toString: "unknown_field" } as never],
  ];
  for (const [value, expected] of wrong) {
    expect([JSON.stringify(value), Object.entries(codes(parser, value)).sort()]).toEqual([
      JSON.stringify(value),
      JSON.stringify(value).includes("__proto__") ? [["__proto__", "unknown_field"]] : Object.entries(expected).sort(),
    ]);
  }
});

test("[HT120] in a union of objects the constant member decides which one is meant", () => {
  const actions = createParser(
    Type.Union([
      Type.Object({ action: Type.Literal("get"), key: Type.String() }),
      Type.Object({ action: Type.Literal("count") }),
    ]),
  );
  expect(actions.problemsOf({ action: "get", key: "a" })).toBeNull();
  expect(codes(actions, {})).toEqual({ action: "required" });
  expect(codes(actions, { action: "drop" })).toEqual({ action: "invalid_value" });
  expect(codes(actions, { action: ["get"] })).toEqual({ action: "invalid_value" });
  expect(codes(actions, { action: "get" })).toEqual({ key: "required" });
  expect(codes(actions, { action: "count", key: "a" })).toEqual({ key: "unknown_field" });
});

test("[HT121] an answer names at most 20 unknown members and 100 fields at fault", () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`x${index}`, 1]));
  expect(Object.keys(parser.problemsOf({ name: "a", ...many }) ?? {})).toHaveLength(20);
  const list = createParser(Type.Object({ items: Type.Array(Type.String()) }));
  expect(Object.keys(list.problemsOf({ items: Array.from({ length: 5_000 }, () => 1) }) ?? {})).toHaveLength(100);
});
