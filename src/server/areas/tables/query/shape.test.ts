import { describe, expect, test } from "bun:test";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Filter } from "../../../config/types.ts";
import { type ParsedFilter, parseAlternatives, parseFilter, withBoth } from "../filters/filter.ts";
import { bound } from "../filters/filter-sql.ts";
import { parseSort } from "../filters/sort.ts";
import { compileTables, type TableModel } from "../model/model.ts";
import { createShapeCache } from "../records/namespaces.ts";
import type { Grant } from "../rules/access.ts";
import type { ListRequest, Paging } from "./list-query.ts";
import type { PreparedList } from "./list-sql.ts";
import { createPreparedReads, type Shaped } from "./prepared-reads.ts";
import { Shape } from "./shape.ts";

const models = compileTables("shared", {
  posts: {
    schema: {
      category: { type: "string" },
      score: { type: "number" },
      isOpen: { type: "boolean" },
      email: { type: "string", unique: true },
      writtenAt: { type: "datetime" },
      tags: { type: "json" },
      place: { type: "geo" },
    },
    indexes: [{ fields: ["category", "score"] }, { fields: ["writtenAt"] }],
  },
  loose: {},
});
const modelOf = (name: string): TableModel => {
  const model = models.get(name);
  if (model === undefined) throw new Error(`no model ${name}`);
  return model;
};
const posts = modelOf("posts");

const OPTIONS = { name: "filter", conditionsMax: 100 };
const filterOf = (all: Filter, any: Filter = [], model = posts): ParsedFilter =>
  withBoth(parseFilter(model, all, OPTIONS), parseAlternatives(model, any, OPTIONS));
const ruled = (filter: ParsedFilter): Grant => ({ kind: "filter", filter, action: "read", answer: [], again: null });
const EVERYTHING: Grant = { kind: "all", saidBy: "rule", again: null };

function requestOf(filter: ParsedFilter, sort: string | null = null, paging: Paging = { mode: "first" }): ListRequest {
  const order = { sort: parseSort(posts, sort), limit: 20, paging };
  return { filter, ...order, near: null, isTotalAsked: true, fields: null, expand: null };
}

/** Returns the statements as they run. */
function statements({ made: { page, total, ofFew, walk, near: _, ...others }, values }: Shaped<PreparedList>) {
  const bind = (statement: PreparedList["page"] | null | undefined) =>
    statement === null || statement === undefined ? null : bound(statement, values);
  return {
    ...others,
    page: bind(page),
    total: bind(total?.sql),
    ofFew: [bind(ofFew?.count), bind(ofFew?.bytes), bind(ofFew?.page)],
    walk: walk?.ranges.map((range) => [bind(range.page), bind(range.rest)]) ?? null,
  };
}

/** Pairs of filters with different values throughout, and the same shape. */
const SAME: [Filter, Filter][] = [
  [[["category", "==", "news"]], [["category", "==", "a\nb ? null \u0000"]]],
  [[["category", "!=", "news"]], [["category", "!=", ""]]],
  [[["category", "in", ["a", "b", "c"]]], [["category", "in", ["1", "2", "3", "4"]]]],
  [[["category", "in", ["a", null]]], [["category", "in", [null, "b"]]]],
  [
    [["category", "not in", ["a", "b", "c", "d", "e"]]],
    [["category", "not in", ["1", "2", "3", "4", "5", "6", "7", "8"]]],
  ],
  [[["isOpen", "==", true]], [["isOpen", "==", false]]],
  [[["isOpen", "in", [true, false]]], [["isOpen", "in", [false, true]]]],
  [[["email", "in", ["a@b.c", "d@e.f"]]], [["email", "in", ["x@y.z", "a@b.c"]]]],
  [
    [
      ["writtenAt", ">=", "2026-11-21T14:00:00Z"],
      ["writtenAt", "<", "2026-11-22T14:00:00Z"],
    ],
    [
      ["writtenAt", ">=", "1970-01-01T00:00:00.000Z"],
      ["writtenAt", "<", "2026-11-22T14:00:00.123+02:00"],
    ],
  ],
  [
    [
      ["category", "==", "news"],
      ["score", ">=", 1],
      ["score", "<", 5],
    ],
    [
      ["category", "==", "film"],
      ["score", ">=", -0.5],
      ["score", "<", 1e300],
    ],
  ],
  [[["category", "contains", "xyz"]], [["category", "contains", "%_?"]]],
  [[["category", "icontains", "XyZ"]], [["category", "icontains", "abc"]]],
  [[["category", "startsWith", "x"]], [["category", "startsWith", "other"]]],
  [[["category", "istartsWith", "AB"]], [["category", "istartsWith", "éé"]]],
  [
    [["place", "within", { lat: 48.2, lng: 16.37, meters: 500 }]],
    [["place", "within", { lat: -90, lng: 180, meters: 2e7 }]],
  ],
  [
    [["place", "inBox", { south: 1, west: 2, north: 3, east: 4 }]],
    [["place", "inBox", { south: -90, west: 170, north: 90, east: -180 }]],
  ],
  [[["tags.a", "==", 1]], [["tags.a", "==", 2.5]]],
  [[["tags.a", "==", "x"]], [["tags.a", "==", "? 1"]]],
  [[["tags.a", "!=", { b: 1 }]], [["tags.a", "!=", [1, 2]]]],
  [[["tags.a", ">", "x"]], [["tags.a", ">", "y"]]],
  [[["tags", "contains", "x"]], [["tags", "contains", "y"]]],
  [[["tags", "contains", 1]], [["tags", "contains", 2]]],
  [[["tags", "icontains", "X"]], [["tags", "icontains", "y"]]],
  [[["tags.a", "startsWith", "X"]], [["tags.a", "startsWith", "yy"]]],
  [[["tags.a", "in", ["a", 1, null, true, [1]]]], [["tags.a", "in", [{ b: 2 }, 7, "b", true, null]]]],
  [[["tags.a", "not in", ["a", "b", "c"]]], [["tags.a", "not in", ["a", "b", "c", "d"]]]],
];

/** Filters of which no two have the same statements. */
const DIFFERENT: Filter[] = [
  [],
  [["category", "==", "news"]],
  [["category", "==", null]],
  [["category", "!=", "news"]],
  [["category", "!=", null]],
  [["email", "==", "news"]],
  [["place", "==", null]],
  [["place", "within", { lat: 1, lng: 2, meters: 3 }]],
  [["place", "inBox", { south: 1, west: 2, north: 3, east: 4 }]],
  [["category", "in", []]],
  [["category", "in", [null]]],
  [["category", "in", ["a"]]],
  [["category", "in", ["a", null]]],
  [["category", "in", ["a", "b"]]],
  [["category", "in", ["a", "b", "c"]]],
  [["category", "not in", ["a", "b", "c"]]],
  [["score", ">", 1]],
  [["score", ">=", 1]],
  [
    ["score", ">", 1],
    ["isOpen", "==", true],
  ],
  [
    ["isOpen", "==", true],
    ["score", ">", 1],
  ],
  [["category", "contains", "x"]],
  [["category", "icontains", "x"]],
  [["category", "startsWith", "x"]],
  [["category", "startsWith", ""]],
  [["category", "istartsWith", "x"]],
  [["tags.a", "==", 1]],
  [["tags.b", "==", 1]],
  [["tags", "==", 1]],
  [["tags.a", "==", "1"]],
  [["tags.a", "==", true]],
  [["tags.a", "==", false]],
  [["tags.a", "==", null]],
  [["tags.a", "==", [1]]],
  [["tags.a", "in", ["x"]]],
  [["tags.a", "in", [1]]],
  [["tags.a", "in", [[1]]]],
  [["tags.a", "in", [null]]],
  [["tags.a", "in", [true]]],
  [["tags.a", "in", [false]]],
  [["tags.a", "in", []]],
  [{ or: [] }],
  [{ not: [] }],
  [{ not: { or: [] } }],
  [{ or: [[["score", ">", 1]], [["isOpen", "==", true]]] }],
  [
    {
      or: [
        [
          ["score", ">", 1],
          ["isOpen", "==", true],
        ],
      ],
    },
  ],
  [{ or: [[["score", ">", 1]]] }, ["isOpen", "==", true]],
  [{ not: [["score", ">", 1]] }, ["isOpen", "==", true]],
  [
    {
      not: [
        ["score", ">", 1],
        ["isOpen", "==", true],
      ],
    },
  ],
];

const keyOf = (filter: Filter): string => new Shape().addFilter(filterOf(filter)).key;

describe("the statements of a shape", () => {
  test("[TB473] with the values of a request are those that are made for it alone", () => {
    for (const pair of [...SAME, ...DIFFERENT.map((one) => [one, one] as const)]) {
      for (const sort of [null, "score:desc", "category,score", "tags.a:desc,writtenAt"]) {
        for (const [own, rule] of [
          [pair, null],
          [null, pair],
          [pair, pair],
        ] as const) {
          const [first, second] = [0, 1].map((place) => {
            const filter = filterOf(own?.[place] ?? [["score", ">", place]]);
            const grant = rule === null ? EVERYTHING : ruled(filterOf(rule[place] ?? []));
            return { request: requestOf(filter, sort), grant };
          });
          if (first === undefined || second === undefined) throw new Error("a pair is two");
          const shared = createPreparedReads(posts, createShapeCache());
          shared.list(first.request, first.grant);
          const alone = createPreparedReads(posts, createShapeCache());
          expect(statements(shared.list(second.request, second.grant))).toEqual(
            statements(alone.list(second.request, second.grant)),
          );
          const filter = second.request.filter;
          expect(shared.first(filter, second.grant, 5)).toEqual(alone.first(filter, second.grant, 5));
        }
      }
    }
  });

  test("[TB473] are shared by filters that differ in their values, and by no others", () => {
    for (const [first, second] of SAME) expect(keyOf(first)).toBe(keyOf(second));
    expect(new Set(DIFFERENT.map(keyOf)).size).toBe(DIFFERENT.length);
    const filters = DIFFERENT.flatMap((one) => [filterOf(one), filterOf([], one.slice(0, 5))]);
    const keys = filters.map((filter) => new Shape().addFilter(filter).key);
    const written = filters.map((filter) =>
      JSON.stringify(filter, (name, value) => (name === "field" ? value.name : value)),
    );
    expect(new Set(keys).size).toBe(new Set(written).size);
  });

  test("[TB473] are shared by pages of a list, each of which skips its own number of records", () => {
    const reads = createPreparedReads(posts, createShapeCache());
    const at = (offset: number) =>
      reads.list(requestOf(filterOf([["score", ">", 1]]), "score,category", { mode: "offset", offset }), EVERYTHING);
    expect(at(890).made).toBe(at(800).made);
    expect(statements(at(800)).page?.params.at(-1)).toBe(800);
    expect(at(20).made).not.toBe(at(0).made);
    expect(at(200_000).made).not.toBe(at(200_001).made);
  });

  test("[TB473] have the values of the request alone: none of the one that they were made for", () => {
    const secret = "the secret of the first caller";
    const filter = (text: string, score: number): ParsedFilter =>
      filterOf(
        [
          ["category", "==", text],
          ["tags.a", "in", [text, score, [text]]],
          ["email", "icontains", text],
        ],
        [
          ["category", "startsWith", text],
          ["score", "<", score],
        ],
      );
    const paging = (text: string): Paging => ({ mode: "after", values: [text, 5, text] });
    const reads = createPreparedReads(posts, createShapeCache());
    const texts = [secret, "X".repeat(secret.length)];
    const [first, second] = texts.map((text, place) =>
      JSON.stringify(
        statements(
          reads.list(requestOf(filter(text, place), "category,score", paging(text)), ruled(filter(text, place))),
        ),
      ),
    );
    expect(first).toContain(secret);
    expect(second).not.toContain(secret);
    expect(second).toContain(texts[1] ?? "");
  });

  test("[TB473] differ for null and other values in a cursor, for limits, offsets, directions and totals", () => {
    const reads = createPreparedReads(posts, createShapeCache());
    const pages: Paging[] = [
      { mode: "first" },
      { mode: "offset", offset: 0 },
      { mode: "offset", offset: 20 },
      { mode: "after", values: [1, "x"] },
      { mode: "after", values: [null, "x"] },
      { mode: "before", values: [1, "x"] },
    ];
    const made = pages.flatMap((paging) => [
      reads.list(requestOf(filterOf([]), "score:desc", paging), EVERYTHING),
      reads.list({ ...requestOf(filterOf([]), "score:desc", paging), limit: 5 }, EVERYTHING),
    ]);
    expect(new Set(made.map((one) => JSON.stringify(statements(one)))).size).toBe(made.length - 2);
    const asked = requestOf(filterOf([]));
    expect(reads.list(asked, EVERYTHING).made.total).not.toBeNull();
    expect(reads.list({ ...asked, isTotalAsked: false }, EVERYTHING).made.total).toBeNull();
    expect(reads.list(asked, { kind: "record", by: {} as never }).made.total).toBeNull();
  });
});

describe("what is kept of shapes", () => {
  const deep = (count: number, value: JsonValue): ParsedFilter =>
    filterOf(
      Array.from({ length: count }, (_, index) => [`tags.${"x".repeat(400)}${index}`, "==", value] as const) as Filter,
    );

  test("[TB473] is bounded: the least recently used go, and a very long one is not kept", () => {
    const cache = createShapeCache();
    const reads = createPreparedReads(posts, cache);
    const kept = requestOf(filterOf([["score", ">", 1]]));
    for (let round = 0; round < 2_000; round++) {
      const paths = filterOf(
        Array.from({ length: 20 }, (_, index) => [`tags.p${round}x${index}`, "==", "x"]) as Filter,
      );
      reads.list(requestOf(paths), EVERYTHING);
      reads.list(kept, EVERYTHING);
    }
    expect(cache.calculatedSize).toBeLessThanOrEqual(4 * 1024 * 1024);
    expect(cache.size).toBeLessThan(2_000);
    const sizeBefore = cache.size;
    reads.list(kept, EVERYTHING);
    expect(cache.size).toBe(sizeBefore);
    const long = filterOf(Array.from({ length: 50 }, () => ["category", "in", Array(1_000).fill("x")]) as Filter);
    const { values } = reads.list(requestOf(long), EVERYTHING);
    expect(values).toHaveLength(50 * 1_024);
    expect(cache.size).toBe(sizeBefore);
    expect(reads.count(deep(50, "x"), EVERYTHING).values).toHaveLength(50);
  });

  test("[TB473] belongs to one table of one server: another one of its name makes its own", () => {
    const cache = createShapeCache();
    const again = compileTables("shared", { posts: { schema: { score: { type: "number" } } } }).get("posts");
    if (again === undefined) throw new Error("no model");
    const request = requestOf(filterOf([["score", ">", 1]]));
    const first = createPreparedReads(posts, cache).list(request, EVERYTHING).made.page.sql;
    const second = createPreparedReads(again, cache).list(request, EVERYTHING).made.page.sql;
    expect(first).toContain('"tags"');
    expect(second).not.toContain('"tags"');
  });

  test("[TB31] a path into a schemaless record is part of the shape, its value is not", () => {
    const loose = modelOf("loose");
    const keyOfLoose = (path: string, value: JsonValue) =>
      new Shape().addFilter(filterOf([[path, "==", value]], [], loose)).key;
    expect(keyOfLoose("a b", "x")).toBe(keyOfLoose("a b", "y"));
    expect(keyOfLoose("a b", "x")).not.toBe(keyOfLoose("a.b", "x"));
    expect(keyOfLoose("a", "x")).not.toBe(keyOfLoose("a == text 0", "x"));
  });
});
