import { expect, test } from "bun:test";
import type { JsonValue } from "../../kernel/json/json.ts";
import { type Condition, type Element, everything } from "../tables/description.ts";
import { planOf } from "./plan.ts";
import { completePlan } from "./special-queries.ts";

const FORMS = [
  "2024-05-06T06:00:00+02:00",
  "2024-05-06T04:00Z",
  "2024-05-06t09:30:00+0530",
  "2024-05-06 04:00:00.0009Z",
];
const INSTANT = "2024-05-06T04:00:00.000Z";

const planWith = (...conditions: Element[]) =>
  planOf({ ...everything({ namespace: "shared", instance: null, table: "events" }), conditions });

function matches(at: JsonValue, ...conditions: Condition[]): boolean {
  const plan = planWith(...conditions);
  if (!plan.isComplete) completePlan(plan);
  return plan.matches({ id: "a", at });
}

test("[TB682] a live query evaluates instants in whatever form they are given", () => {
  for (const form of FORMS) {
    expect(matches(INSTANT, ["at", "==", form])).toBe(true);
    expect(matches(INSTANT, ["at", "!=", form])).toBe(false);
    expect(matches("2024-05-06T03:59:59.999Z", ["at", "<", form])).toBe(true);
    expect(matches("2024-05-06T05:00:00.000Z", ["at", "<", form])).toBe(false);
    expect(matches(INSTANT, ["at", "in", ["1970-01-01T00:00:00Z", form]])).toBe(true);
    // What was written here, and has no answer yet.
    expect(matches(form, ["at", "==", INSTANT])).toBe(true);
    for (const other of FORMS) expect(matches(form, ["at", ">=", other])).toBe(true);
  }
  expect(matches("1970-01-01T00:00:00.000Z", ["at", "==", "1970-01-01T01:00:00+01:00"])).toBe(true);
});

test("[TB682] other texts and values are compared as they are", () => {
  expect(matches("2024-05-06", ["at", "==", "2024-05-06"])).toBe(true);
  expect(matches("2024-05-06T06:00", ["at", "<", "2024-05-06T07:00"])).toBe(true);
  expect(matches("soon", ["at", ">", INSTANT])).toBe(true);
  expect(matches(null, ["at", "!=", INSTANT])).toBe(true);
  expect(matches("2024-02-31T99:00Z", ["at", "==", "2024-02-31T99:00Z"])).toBe(true);
});

test("[TC360] conditions that few queries have match nothing before the code for them has come", () => {
  const special: [JsonValue, Condition][] = [
    [{ lat: 1, lng: 1 }, ["at", "within", { lat: 1, lng: 1, meters: 5 }]],
    [{ lat: 1, lng: 1 }, ["at", "inBox", { south: 0, west: 0, north: 2, east: 2 }]],
    ["Text", ["at", "icontains", "EX"]],
    ["Text", ["at", "istartsWith", "tE"]],
    [
      ["a", "b"],
      ["at", "has", "a"],
    ],
    [
      ["a", "b"],
      ["at", "hasAny", ["c", "a"]],
    ],
    [
      ["a", "b"],
      ["at", "hasAll", ["b", "a"]],
    ],
    [INSTANT, ["at", "==", "2024-05-06T06:00:00+02:00"]],
    [INSTANT, ["at", "in", ["soon", "2024-05-06 04:00:00Z"]]],
  ];
  for (const [at, condition] of special) {
    for (const plan of [
      planWith(condition),
      planWith({ or: [[condition], [condition]] }),
      planWith({ not: { and: [{ not: [condition] }] } } as never),
    ]) {
      expect([plan.isComplete, plan.matches({ id: "a", at })]).toEqual([false, false]);
      completePlan(plan);
      expect([plan.isComplete, plan.matches({ id: "a", at })]).toEqual([true, true]);
    }
  }
  const common: [JsonValue, Condition][] = [
    ["a", ["at", "==", "a"]],
    ["a", ["at", "!=", "b"]],
    [2, ["at", ">", 1]],
    [2, ["at", ">=", 2]],
    [2, ["at", "<", 3]],
    ["2024-05-06", ["at", "<=", "2024-05-06"]],
    ["a", ["at", "in", ["b", "a"]]],
    ["a", ["at", "not in", ["b"]]],
    [["a"], ["at", "contains", "a"]],
    ["ab", ["at", "startsWith", "a"]],
  ];
  for (const [at, condition] of common) {
    const plan = planWith(condition);
    expect([plan.isComplete, plan.matches({ id: "a", at })]).toEqual([true, true]);
  }
});
