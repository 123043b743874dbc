import { expect, test } from "bun:test";
import type { JsonValue } from "../json/json.ts";
import { type MatchCondition, matches } from "./filter-match.ts";
import type { ValuePath } from "./value-path.ts";

const field: ValuePath = { keys: ["data"] };

const isMatch = (condition: Partial<MatchCondition>, data: JsonValue): boolean =>
  matches({ all: [{ field, ...condition } as MatchCondition], groups: [] }, { data });

test("[TB17] objects and arrays are equal where their JSON is, at any size", () => {
  const value = { a: [1, "x", { b: null }], c: '\u0001"' };
  const others = [{ ...value, d: 1 }, { c: value.c, a: value.a }, {}, [], "x", 1, null];
  expect(isMatch({ operator: "==", value: { ...value } }, value)).toBe(true);
  expect(isMatch({ operator: "in", value: [...others, { ...value }] }, value)).toBe(true);
  expect(isMatch({ operator: "in", value: others }, value)).toBe(false);
  expect(isMatch({ operator: "not in", value: others }, value)).toBe(true);
  for (const other of others) {
    expect(isMatch({ operator: "==", value: other }, value)).toBe(false);
    expect(isMatch({ operator: "!=", value: value }, other)).toBe(true);
    expect(isMatch({ operator: "contains", value: other }, [1.5, other])).toBe(true);
    expect(isMatch({ operator: "contains", value: value }, [other, [value]])).toBe(false);
  }
  const untyped = [undefined, { ...value }] as JsonValue[]; // as plain JavaScript may have it
  expect(isMatch({ operator: "in", value: untyped }, value)).toBe(true);
  expect(isMatch({ operator: "in", value: untyped }, [])).toBe(false);
  const long = Array.from({ length: 10_000 }, (_, index) => index);
  expect(isMatch({ operator: "in", value: [[], [...long]] }, long)).toBe(true);
  expect(isMatch({ operator: "in", value: [[...long, 1], long.slice(1)] }, long)).toBe(false);
});

test("[TB17] a long value is read only up to the length of the value it is compared with", () => {
  let reads = 0;
  const long: JsonValue[] = new Proxy(Array<JsonValue>(100_000).fill([1]), {
    get(target, name, receiver) {
      reads++;
      return Reflect.get(target, name, receiver);
    },
  });
  const short = Array.from({ length: 1_000 }, (_, index) => [index]);
  expect(isMatch({ operator: "not in", value: short }, long)).toBe(true);
  expect(isMatch({ operator: "==", value: { a: 1 } }, long)).toBe(false);
  expect(isMatch({ operator: "contains", value: [1, 2] }, [long, [1]])).toBe(false);
  expect(reads).toBeLessThan(1_000);
});
