import { expect, test } from "bun:test";
import type { Filter, FilterTuple } from "../../../config/types.ts";
import { compileTables } from "../model/model.ts";
import { conditionsIn, parseFilter } from "./filter.ts";
import { hasHeavyRelation, isQuick, relatedCost, scanCost, sortedCost } from "./read-cost.ts";
import { parseSort } from "./sort.ts";

const model = compileTables("shared", {
  posts: { schema: { text: { type: "text" }, score: { type: "number" }, tags: { type: "json" } } },
}).get("posts");
if (model === undefined) throw new Error("no model");

const related = compileTables("shared", {
  docs: { schema: { teamId: { type: "string" } } },
  members: {
    schema: {
      teamId: { type: "string" },
      userId: { type: "string" },
      role: { type: "string" },
      note: { type: "text" },
    },
    indexes: [{ fields: ["teamId", "userId"] }, { fields: ["role", "note"], unique: true }],
  },
}).get("docs");
const costOfRule = (...where: unknown[]) => {
  if (related === undefined) throw new Error("no model");
  const options = { name: "rule", conditionsMax: 100, takesRelations: true };
  const filter = parseFilter(related, { some: { table: "members", where } }, options);
  return { isQuick: isQuick(relatedCost(scanCost([], []), filter), 100, 1_000), isHeavy: hasHeavyRelation(filter) };
};

const MIB = 1024 * 1024;
const cost = (...filter: Filter) =>
  scanCost(
    [...conditionsIn(parseFilter(model, filter, { name: "filter", conditionsMax: 100 }))],
    Array<number>(filter.length).fill(1),
  );
const sorted = (sort: string, kept: number) => sortedCost(cost(), parseSort(model, sort), kept);
const many = (count: number, ...tuple: FilterTuple): Filter => Array<FilterTuple>(count).fill(tuple);

test("[TB102] a small table is scanned on the main thread", () => {
  expect(isQuick(cost(), 5_000, MIB)).toBe(true);
  expect(isQuick(cost(["score", ">", 5], ["text", "==", "a"]), 5_000, MIB)).toBe(true);
  expect(isQuick(cost(["text", "contains", "abc"]), 1_000, 100_000)).toBe(true);
  expect(isQuick(cost(["tags", "contains", "abc"]), 1_000, 100_000)).toBe(true);
  expect(isQuick(sorted("score:desc", 20), 5_000, MIB)).toBe(true);
});

test("[TB102] reads that take long by their rows, bytes, conditions or sorts leave it", () => {
  expect(isQuick(cost(), 60, 60 * MIB)).toBe(false);
  expect(isQuick(cost(["text", "contains", "a"]), 10, MIB)).toBe(false);
  expect(isQuick(cost(["text", "contains", "a".repeat(1_000)]), 10, 200_000)).toBe(false);
  expect(isQuick(cost(...many(50, "tags.a.b", "==", 1)), 1_000, 100_000)).toBe(false);
  expect(isQuick(sorted("score", 4_000), 5_000, MIB)).toBe(false);
  expect(isQuick(scanCost([], Array<number>(10_000).fill(1)), 10, 1_000)).toBe(false);
});

test("[TB607] relations are asked on the main thread where an index has exactly their records, or at most one", () => {
  const team = ["teamId", "==", { field: "teamId" }];
  const user = ["userId", "==", "ann"];
  const short = { isQuick: true, isHeavy: false };
  const long = { isQuick: false, isHeavy: true };
  expect(costOfRule(team, user)).toEqual(short);
  expect(costOfRule(team)).toEqual(short);
  expect(costOfRule(["role", "==", "owner"], ["note", "==", "x"], user)).toEqual(short);
  expect(costOfRule(team, user, ["role", "==", "owner"])).toEqual(long);
  expect(costOfRule(team, ["note", "contains", "x"])).toEqual(long);
  expect(costOfRule(team, { not: [user] })).toEqual(long);
  expect(costOfRule(team, ["userId", "in", Array(1_000).fill("ann")])).toEqual(long);
  expect(costOfRule(team, { some: { table: "members", where: [team, user] } })).toEqual(long);
});
