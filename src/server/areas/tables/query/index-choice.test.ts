import { expect, test } from "bun:test";
import type { Filter } from "../../../config/types.ts";
import { parseFilter } from "../filters/filter.ts";
import { parseSort } from "../filters/sort.ts";
import { compileTables, declareTable } from "../model/model.ts";
import { coveringIndex, walkOf } from "./index-choice.ts";

const model = compileTables("shared", {
  posts: {
    schema: {
      category: { type: "string" },
      score: { type: "number" },
      email: { type: "string", required: true, unique: true },
      nick: { type: "string", unique: true },
      tags: { type: "json" },
    },
    indexes: [{ fields: ["category", "score"] }, { fields: ["score"] }],
  },
}).get("posts");
if (model === undefined) throw new Error("no model");

const conditions = (...filter: Filter) => parseFilter(model, filter, { name: "filter", conditionsMax: 50 }).all;
const covered = (...filter: Filter) => coveringIndex(model, conditions(...filter))?.name ?? null;
/** Whether an index has exactly the matches in the order of the sort. */
const walks = (sort: string | null, ...filter: Filter) =>
  walkOf(model, conditions(...filter), parseSort(model, sort))?.entering.length === filter.length;

test("an index covers equal leading columns, then one that is compared", () => {
  const both = "ix:posts:category,score,id";
  expect(covered(["category", "==", "news"])).toBe(both);
  expect(covered(["score", ">=", 5], ["category", "==", "news"])).toBe(both);
  expect(covered(["category", "==", "news"], ["score", ">", 1], ["score", "<=", 5])).toBe(both);
  expect(covered(["category", "==", null], ["score", "==", 5])).toBe(both);
  expect(covered(["score", "<", 5])).toBe("ix:posts:score,id");
  expect(covered(["email", ">", "a@b.c"])).toBe("ux:posts:email");
  expect(covered(["category", "startsWith", "ne"])).toBe(both);
});

test("a unique index finds at most one record per value, with any other conditions", () => {
  expect(covered(["email", "==", "a@b.c"], ["tags", "contains", "x"])).toBe("ux:posts:email");
  expect(covered(["score", ">", 1], ["id", "in", ["a", "b"]])).toBe("sqlite_autoindex_posts_1");
  expect(covered(["nick", "in", ["a", "b"]])).toBe("ux:posts:nick");
});

test("an index does not cover conditions that leave records to be skipped", () => {
  expect(covered()).toBeNull();
  expect(covered(["category", ">", "a"], ["score", "==", 5])).toBeNull();
  expect(covered(["category", "==", "a"], ["score", "!=", 5])).toBeNull();
  expect(covered(["category", "==", "a"], ["category", "==", "b"])).toBeNull();
  expect(covered(["category", "contains", "a"])).toBeNull();
  expect(covered(["category", "istartsWith", "a"])).toBeNull();
  expect(covered(["category", "startsWith", "a"], ["category", ">", "b"])).toBeNull();
  expect(covered(["category", "startsWith", "a"], ["score", "==", 5])).toBeNull();
  expect(covered(["score", ">", 1], ["score", ">", 2])).toBeNull();
  expect(covered(["score", ">", 1], ["tags", "==", 2])).toBeNull();
  expect(covered(["nick", "in", ["a", null]], ["tags", "==", 1])).toBeNull();
});

test("an index serves a sort after its equal leading columns", () => {
  expect(walks(null)).toBe(true);
  expect(walks("id:desc")).toBe(true);
  expect(walks("score")).toBe(true);
  expect(walks("category,score")).toBe(true);
  expect(walks("score", ["category", "==", "news"])).toBe(true);
  expect(walks(null, ["category", "==", "news"], ["score", "==", 5])).toBe(true);
  expect(walks("email")).toBe(true);
  expect(walks("email,score")).toBe(true);
});

test("an index serves a sort in either direction, where it ends with the id", () => {
  expect(walks("score:desc")).toBe(true);
  expect(walks("score:desc", ["category", "==", "news"])).toBe(true);
  expect(walks("category:desc,score:desc")).toBe(true);
  expect(walks("score,id:desc")).toBe(false);
  expect(walks("category,score:desc")).toBe(false);
});

test("an index serves bounds on the first sorted column behind its equal ones", () => {
  expect(walks("score:desc", ["score", ">", 1], ["score", "<=", 5])).toBe(true);
  expect(walks("score", ["category", "==", "news"], ["score", ">", 1])).toBe(true);
  expect(walkOf(model, conditions(["score", ">", 1], ["category", "!=", "news"]), parseSort(model, "score"))).toEqual({
    index: "ix:posts:score,id",
    entering: conditions(["score", ">", 1]),
  });
});

test("an index does not serve where records would have to be sorted or left out", () => {
  expect(walks("category")).toBe(false);
  expect(walks("createdAt")).toBe(false);
  expect(walks("score", ["category", ">", "a"])).toBe(false);
  expect(walks("score", ["category", "==", "a"], ["category", "==", "b"])).toBe(false);
  expect(walks(null, ["category", "==", "news"])).toBe(false);
  // Many records may have null in the field, and those are equal.
  expect(walks("nick")).toBe(false);
  expect(walks("tags.a")).toBe(false);
});

test("[TB79] a reference has an index, unless a declared or unique one begins with it", () => {
  const reference = { type: "string", references: "authors" } as const;
  const posts = compileTables("shared", {
    authors: { schema: {} },
    posts: {
      schema: { a: reference, b: reference, c: reference, d: { ...reference, unique: true } },
      indexes: [{ fields: ["b", "c"] }],
    },
  }).get("posts");
  if (posts === undefined) throw new Error("no model");
  expect(declareTable(posts).indexes).toEqual([
    { fields: ["b", "c", "id"], unique: false },
    { fields: ["a", "id"], unique: false },
    { fields: ["c", "id"], unique: false },
  ]);
  const filter = parseFilter(posts, [["c", "==", "x"]], { name: "filter", conditionsMax: 50 }).all;
  expect(coveringIndex(posts, filter)?.name).toBe("ix:posts:c,id");
});
