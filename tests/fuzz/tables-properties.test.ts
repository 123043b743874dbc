import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { matches } from "../../src/kernel/records/filter-match.ts";
import { compareRecords } from "../../src/kernel/records/order.ts";
import { compareText } from "../../src/kernel/records/text-match.ts";
import { parseAlternatives, parseFilter, plain, withBoth } from "../../src/server/areas/tables/filters/filter.ts";
import { compileTables } from "../../src/server/areas/tables/model/model.ts";
import type { FilterOperator, TableConfig } from "../../src/server/config/types.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../support/index.ts";
import { random, testSeed } from "../support/random.ts";

const SEED = testSeed(20_261);
const TABLES: Record<string, TableConfig> = {
  items: {
    schema: {
      s: { type: "string" },
      n: { type: "number" },
      i: { type: "integer" },
      b: { type: "boolean" },
      j: { type: "json" },
      refs: { type: "references", references: "targets" },
    },
    indexes: [{ fields: ["i"] }],
    access: { read: true },
  },
  free: { access: { read: true } },
  targets: { schema: {}, access: { read: true } },
};
const TARGETS = ["p", "q", "r", "s", "t"];
const TEXTS = [
  "",
  "a",
  "A",
  "ab",
  "b",
  "ä",
  "é",
  "e\u0301",
  "\uffff",
  "😀",
  "😀x",
  "\u{10ffff}",
  "z'\"",
  "100%",
  "_",
  "a b",
  "true",
  "1",
];
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.1,
  0.1 + 0.2,
  1e21,
  -1e-9,
  5e-324,
  1.7976931348623157e308,
  123_456_789.123_456_79,
  2 ** 53 - 1,
];
const IN_TEXT: FilterOperator[] = ["contains", "icontains", "startsWith", "istartsWith"];
const OPERATORS: FilterOperator[] = ["==", "!=", ">", ">=", "<", "<=", ...IN_TEXT, "in", "not in"];

let platform: TestPlatform;
let stored: Record<string, JsonObject[]>;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const r = random(SEED);

const orNull = <T>(value: T): T | null => (r.next() < 0.2 ? null : value);
const json = (depth = 0): JsonValue => {
  const kind = r.below(depth > 1 ? 5 : 7);
  if (kind === 0) return r.pick(TEXTS);
  if (kind === 1) return r.pick(NUMBERS);
  if (kind === 2) return r.next() < 0.5;
  if (kind === 3) return null;
  if (kind === 4) return r.below(3);
  if (kind === 5) return Array.from({ length: r.below(4) }, () => json(depth + 1));
  return Object.fromEntries(["x", "y", "k k"].filter(() => r.next() < 0.6).map((key) => [key, json(depth + 1)]));
};

beforeAll(async () => {
  platform = await testPlatform({ config: { databases: { shared: { tables: TABLES as never } } } });
  const targets = await platform.service.post(`${path("targets")}/batch`, { inserts: TARGETS.map((id) => ({ id })) });
  expect(targets.status).toBe(200);
  const rows = Array.from({ length: 400 }, (_, index) => ({
    id: `r${index}`,
    s: orNull(r.pick(TEXTS)),
    n: orNull(r.pick(NUMBERS)),
    i: orNull(r.below(6) - 2),
    b: orNull(r.next() < 0.5),
    j: json(),
    refs: TARGETS.filter(() => r.next() < 0.4),
  }));
  for (const table of ["items", "free"]) {
    const answer = await platform.service.post(`${path(table)}/batch`, { inserts: rows });
    expect(answer.status).toBe(200);
  }
  stored = {};
  for (const table of ["items", "free"])
    stored[table] = (await platform.get<ListAnswer>(path(table), { query: { limit: 1000 } })).body.items;
});
afterAll(() => platform.stop());

const models = compileTables("shared", TABLES);

/** A part of a text, often its beginning, sometimes in other case. */
function partOf(text: string): string {
  const characters = [...text];
  const start = r.chance(0.6) ? 0 : r.below(characters.length + 1);
  const part = characters.slice(start, start + r.below(4)).join("");
  return r.chance(0.3) ? part.toUpperCase() : part;
}

/** A tuple whose value fits its field. */
function tuple(table: string): [string, FilterOperator, JsonValue] {
  const isFree = table === "free";
  if (!isFree && r.next() < 0.15) {
    const ids = () => [...TARGETS, "none"].filter(() => r.next() < 0.3);
    return r.pick([
      () => ["refs", "has", r.pick(TARGETS)],
      () => ["refs", "hasAny", ids()],
      () => ["refs", "hasAll", ids()],
    ] as (() => [string, FilterOperator, JsonValue])[])();
  }
  const field = r.pick(["s", "n", "i", "b", "j", "j.x", "j.y", "j.x.y", "j.k k", "id"]);
  const operator = r.pick(OPERATORS);
  const isJson = field.startsWith("j") || (isFree && field !== "id");
  const one = (): JsonValue => {
    if (isJson)
      return operator === "==" ||
        operator === "!=" ||
        operator === "in" ||
        operator === "not in" ||
        operator === "contains"
        ? json(1)
        : r.pick([r.pick(TEXTS), r.pick(NUMBERS)]);
    if (field === "s" || field === "id") return field === "id" ? `r${r.below(400)}` : r.pick(TEXTS);
    if (field === "n") return r.pick(NUMBERS);
    if (field === "i") return r.below(6) - 2;
    return r.next() < 0.5;
  };
  if (operator === "in" || operator === "not in") return [field, operator, Array.from({ length: r.below(5) }, one)];
  if (IN_TEXT.includes(operator) && (!isJson || operator !== "contains"))
    return [isJson ? field : field === "id" ? "id" : "s", operator, partOf(r.pick(TEXTS))];
  if ((operator === "==" || operator === "!=") && r.next() < 0.15) return [field, operator, null];
  return [field, operator, one()];
}

/** Conditions, and groups of them within each other. */
function filterOf(table: string, level: number): unknown[] {
  return Array.from({ length: r.below(3) }, () => {
    if (level === 4 || r.next() < 0.6) return tuple(table);
    const filters = () => Array.from({ length: r.below(4) }, () => filterOf(table, level + 1));
    return r.pick([
      () => ({ or: filters() }),
      () => ({ and: filters() }),
      () => ({ not: filterOf(table, level + 1) }),
    ])();
  });
}

test(`[TB17] [TB600] SQL and JavaScript agree about every filter (seed ${SEED})`, async () => {
  for (let round = 0; round < 400; round++) {
    const table = r.pick(["items", "free"]);
    const all = filterOf(table, 0);
    const any = filterOf(table, 0);
    const model = models.get(table);
    if (model === undefined) throw new Error("no model");
    const parsed = plain(
      withBoth(
        parseFilter(model, all, { name: "filter", conditionsMax: 50 }),
        parseAlternatives(model, any, { name: "orFilter", conditionsMax: 5 }),
      ),
    );
    const wanted = (stored[table] ?? []).filter((record) => matches(parsed, record)).map((record) => record["id"]);
    const answer = await platform.get<ListAnswer>(path(table), {
      query: { limit: 1000, filter: JSON.stringify(all), orFilter: JSON.stringify(any) },
    });
    const found = answer.body.items?.map((record) => record["id"]);
    expect({ table, all, any, found }).toEqual({ table, all, any, found: wanted });
    expect(answer.body.total).toBe(wanted.length);
  }
});

test(`[TB10, TB6] pages of any sort and size are the filtered set, both ways, in the order of JavaScript (seed ${SEED})`, async () => {
  for (let round = 0; round < 40; round++) {
    const table = r.pick(["items", "free"]);
    const fields = ["s", "n", "i", "b", "j", "j.x", "createdAt", "id"].filter(() => r.next() < 0.35);
    const sort = fields.map((field) => `${field}:${r.pick(["asc", "desc"])}`).join(",");
    const filter = JSON.stringify(r.next() < 0.5 ? [] : [["i", r.pick(["!=", ">", "<="]), 1]]);
    const limit = 1 + r.below(150);
    const whole = (await platform.get<ListAnswer>(path(table), { query: { sort, filter, limit: 1000 } })).body.items;
    const wholeIds = whole.map((record) => record["id"]);
    const terms = (sort === "" ? [] : sort.split(",")).map((term) => {
      const [name = "", direction] = term.split(":");
      return {
        field: { keys: name.split(".") },
        direction: direction === "desc" ? ("desc" as const) : ("asc" as const),
      };
    });
    const byId = { field: { keys: ["id"] }, direction: terms.at(-1)?.direction ?? ("asc" as const) };
    const sorted = whole.toReversed().sort((one, other) => compareRecords([...terms, byId], one, other));
    expect({ sort, ids: sorted.map((record) => record["id"]) }).toEqual({ sort, ids: wholeIds });
    const walk = async (direction: "after" | "before", from: string | null) => {
      const pages: JsonValue[][] = [];
      let cursor = from;
      for (let steps = 0; cursor !== null && steps < 500; steps++) {
        const { body } = await platform.get<ListAnswer>(path(table), {
          query: { sort, filter, limit, [direction]: cursor },
        });
        pages.push(body.items.map((record) => record["id"] ?? null));
        expect(body.hasMore).toBe(body.cursor !== null);
        cursor = body.cursor;
      }
      return pages;
    };
    const first = (await platform.get<ListAnswer>(path(table), { query: { sort, filter, limit } })).body;
    const forwards = [first.items.map((record) => record["id"] ?? null), ...(await walk("after", first.cursor))].flat();
    expect({ sort, limit, ids: forwards }).toEqual({ sort, limit, ids: wholeIds as JsonValue[] });
    // From behind the last-but-one page, back to the beginning.
    if (first.cursor === null) continue;
    const second = (
      await platform.get<ListAnswer>(path(table), { query: { sort, filter, limit, after: first.cursor } })
    ).body;
    if (second.cursor === null) continue;
    const backwards = (await walk("before", second.cursor)).reverse().flat();
    expect({ sort, limit, ids: backwards }).toEqual({
      sort,
      limit,
      ids: wholeIds.slice(0, backwards.length) as JsonValue[],
    });
    expect(backwards.length).toBe(first.items.length + second.items.length - 1);
  }
});

test("[TB17] text is ordered by code point", () => {
  const sorted = [...TEXTS].sort(compareText);
  const bytes = [...TEXTS].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  expect(sorted).toEqual(bytes);
});
