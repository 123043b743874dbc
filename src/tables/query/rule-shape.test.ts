import { expect, test } from "bun:test";
import type { Filter } from "../../config/types.ts";
import { compileTables } from "../model/model.ts";
import type { Grant } from "../rules/access.ts";
import { NO_FILTER, type ParsedFilter, parseConditions } from "./filter.ts";
import { walkOf } from "./index-choice.ts";
import { type PreparedList, prepareList } from "./list-sql.ts";
import { filteredPath, matchesOf } from "./reads.ts";
import { ruleShape, withValues } from "./rule-shape.ts";
import { parseSort } from "./sort.ts";

const model = compileTables("shared", {
  posts: {
    schema: {
      category: { type: "string" },
      score: { type: "number" },
      isOpen: { type: "boolean" },
      email: { type: "string", unique: true },
      tags: { type: "json" },
    },
    indexes: [{ fields: ["category", "score"] }],
  },
}).get("posts");
if (model === undefined) throw new Error("no model");

const filterOf = (...filter: Filter): ParsedFilter => ({
  ...NO_FILTER,
  all: parseConditions(model, filter, { name: "rule", conditionsMax: 50 }),
});

/** The statements of a list with the caller's condition and sort, behind a rule's filter. */
function listed(own: ParsedFilter, sortText: string | null, rule: ParsedFilter): PreparedList {
  const sort = parseSort(model as NonNullable<typeof model>, sortText);
  const grant: Grant = { kind: "filter", filter: rule, answer: [], again: null };
  const walk = walkOf(model as NonNullable<typeof model>, [...own.all, ...rule.all], sort);
  const matches = matchesOf(model as NonNullable<typeof model>, own, grant, { isWalk: walk !== null });
  const page = { behind: null, reverse: false, limit: 20, offset: 0, isTotalWanted: true };
  const filtered = filteredPath(model as NonNullable<typeof model>, { filter: own, sort }, grant, matches);
  return prepareList(model as NonNullable<typeof model>, { matches, sort, walk, filtered, ...page });
}

const RULES: Filter[] = [
  [["category", "==", "news"]],
  [["category", "==", null]],
  [["category", "!=", "news"]],
  [["category", "in", ["a"]]],
  [["category", "in", ["a", "b", "c"]]],
  [["category", "in", ["a", null]]],
  [["category", "in", [null]]],
  [["category", "in", []]],
  [["category", "not in", ["a", "b", "c", "d", "e"]]],
  [["isOpen", "==", true]],
  [["isOpen", "in", [true, false]]],
  [["email", "in", ["a@b.c", "d@e.f"]]],
  [
    ["category", "==", "news"],
    ["score", ">=", 1],
    ["score", "<", 5],
  ],
  [
    ["score", ">", 2],
    ["category", "in", ["x", "y"]],
    ["email", "!=", null],
  ],
];
const OWN: Filter[] = [[], [["category", "==", "a"]], [["score", ">", 3]], [["tags", "contains", "x"]]];

test("[TB110] the statements of a shape with a rule's values are those of its filter", () => {
  for (const rule of RULES) {
    const filter = filterOf(...rule);
    const shape = ruleShape(filter);
    if (shape === null) throw new Error(`no shape: ${JSON.stringify(rule)}`);
    for (const own of OWN) {
      for (const sort of [null, "score:desc", "category,score"]) {
        const template = listed(filterOf(...own), sort, shape.template());
        expect(withValues(template, shape.values)).toEqual(listed(filterOf(...own), sort, filter));
      }
    }
  }
});

test("[TB110] filters whose statements differ are of different shapes, and those with other values of the same", () => {
  const keys = RULES.map((rule) => ruleShape(filterOf(...rule))?.key);
  expect(new Set(keys).size).toBe(RULES.length);
  const keyOf = (...filter: Filter) => ruleShape(filterOf(...filter))?.key;
  expect(keyOf(["category", "in", ["x", "y", "z"]])).toBe(keyOf(["category", "in", ["1", "2", "3", "4"]]));
  expect(keyOf(["category", "==", "x"])).toBe(keyOf(["category", "==", "y"]));
});

test("[TB110] a filter whose statements depend on its values has no shape", () => {
  for (const rule of [
    ["category", "contains", "x"],
    ["category", "startsWith", "x"],
    ["tags.a", "==", 1],
  ] as const) {
    expect(ruleShape(filterOf([...rule] as Filter[number]))).toBeNull();
  }
});
