import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

// Large enough that reads without an index run in a query process. Few records have the `kind` "rare", many "common".
const RECORDS = 6_500;
const CONFIG = `{
  databases: { shared: { tables: { items: {
    schema: { kind: { type: "string" }, score: { type: "number" }, code: { type: "string", required: true, unique: true } },
    indexes: [{ fields: ["kind", "score"] }, { fields: ["score"] }],
    access: { read: true },
  } } } },
}`;
const PATH = "/api/db/shared/tables/items";

interface Item extends JsonObject {
  id: string;
  kind: string | null;
  score: number | null;
  code: string;
}

const items: Item[] = Array.from({ length: RECORDS }, (_, index) => ({
  id: `i${String((index * 4_001) % RECORDS).padStart(5, "0")}`,
  kind: index % 13 === 0 ? null : index % 7 === 0 ? "rare" : "common",
  score: index % 11 === 0 ? null : (index * 31) % 40,
  code: `c${String((index * 2_711) % RECORDS).padStart(5, "0")}`,
}));

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  for (let start = 0; start < RECORDS; start += 500) {
    const { status } = await platform.service.post(`${PATH}/batch`, { inserts: items.slice(start, start + 500) });
    expect(status).toBe(200);
  }
});
afterAll(() => platform.stop());

type Order = (a: Item, b: Item) => number;
const upwards = <T extends string | number>(a: T | null, b: T | null): number =>
  a === b ? 0 : a === null ? -1 : b === null ? 1 : a < b ? -1 : 1;
const byId: Order = (a, b) => upwards(a.id, b.id);
const ORDERS: Readonly<Record<string, Order>> = {
  "": byId,
  "id:desc": (a, b) => byId(b, a),
  score: (a, b) => upwards(a.score, b.score) || byId(a, b),
  "score:desc": (a, b) => upwards(b.score, a.score) || byId(b, a),
  "score:desc,id": (a, b) => upwards(b.score, a.score) || byId(a, b),
  "kind,score": (a, b) => upwards(a.kind, b.kind) || upwards(a.score, b.score) || byId(a, b),
  "score:desc,id:desc": (a, b) => upwards(b.score, a.score) || byId(b, a),
  code: (a, b) => upwards(a.code, b.code),
  "kind:desc,code": (a, b) => upwards(b.kind, a.kind) || upwards(a.code, b.code),
};
const FILTERS: readonly { tuples: readonly unknown[]; keeps: (item: Item) => boolean }[] = [
  { tuples: [], keeps: () => true },
  { tuples: [["kind", "==", "rare"]], keeps: ({ kind }) => kind === "rare" },
  { tuples: [["kind", "==", "common"]], keeps: ({ kind }) => kind === "common" },
  { tuples: [["kind", "==", null]], keeps: ({ kind }) => kind === null },
  {
    tuples: [
      ["kind", "==", "common"],
      ["score", ">=", 10],
      ["score", "<", 14],
    ],
    keeps: ({ kind, score }) => kind === "common" && score !== null && score >= 10 && score < 14,
  },
  { tuples: [["score", ">", 20]], keeps: ({ score }) => score !== null && score > 20 },
  { tuples: [["score", "==", null]], keeps: ({ score }) => score === null },
  {
    tuples: [
      ["id", "in", ["i00001", "i06000", "i03333", "none"]],
      ["score", "!=", 3],
    ],
    keeps: ({ id, score }) => ["i00001", "i06000", "i03333"].includes(id) && score !== 3,
  },
  { tuples: [["id", "in", []]], keeps: () => false },
  { tuples: [["code", "==", "c00042"]], keeps: ({ code }) => code === "c00042" },
  { tuples: [["code", "contains", "7"]], keeps: ({ code }) => code.includes("7") },
];

const list = async (query: Record<string, string>): Promise<ListAnswer> => {
  const answer = await platform.get<ListAnswer>(PATH, { query });
  expect([query, answer.status]).toEqual([query, 200]);
  return answer.body;
};
const idsOf = (page: ListAnswer): unknown[] => page.items.map(({ id }) => id);

for (const [sort, order] of Object.entries(ORDERS)) {
  test(`[TB10] pages of a large table, sorted by ${sort || "nothing"}, by any index`, async () => {
    for (const { tuples, keeps } of FILTERS) {
      const wanted = items.filter(keeps).sort(order);
      const ids = wanted.map(({ id }) => id);
      const query = { filter: JSON.stringify(tuples), sort };
      const first = await list({ ...query, limit: "7" });
      expect([query, idsOf(first)]).toEqual([query, ids.slice(0, 7)]);
      expect([first.total, first.hasMore]).toEqual([wanted.length, wanted.length > 7]);

      const offset = Math.floor(wanted.length / 2);
      const middle = await list({ ...query, offset: String(offset), limit: "20" });
      expect([query, idsOf(middle)]).toEqual([query, ids.slice(offset, offset + 20)]);
      expect(middle.total).toBe(wanted.length);
      const counted = await platform.get(`${PATH}/count`, { query: { filter: JSON.stringify(tuples) } });
      expect(counted.body).toEqual({ total: wanted.length });

      let cursor = first.cursor;
      const forwards = idsOf(first);
      // A short page first, because only short pages are read along an index.
      while (cursor !== null) {
        const page: ListAnswer = await list({ ...query, limit: forwards.length === 7 ? "13" : "1000", after: cursor });
        forwards.push(...idsOf(page));
        cursor = page.cursor;
      }
      expect(forwards).toEqual(ids);
    }
  });
}

test("[TB7] backwards through a large table with null values", async () => {
  for (const [sort, order] of Object.entries(ORDERS)) {
    const ids = items.toSorted(order).map(({ id }) => id);
    let page = await list({ sort, limit: "990" });
    const backwards: unknown[] = [];
    for (let count = 0; count < 2; count++) page = await list({ sort, limit: "700", after: page.cursor ?? "" });
    let cursor = page.cursor;
    while (cursor !== null) {
      page = await list({ sort, limit: "900", before: cursor });
      backwards.unshift(...idsOf(page));
      cursor = page.cursor;
    }
    expect([sort, backwards]).toEqual([sort, ids.slice(0, 990 + 700 + 699)]);
  }
});
