import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const P = "/api/db/shared/tables/items";

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      items: {
        schema: { name: { type: "string" }, rank: { type: "integer" }, price: { type: "number" }, live: { type: "boolean" },
                  meta: { type: "json" }, due: { type: "datetime" } },
        indexes: [{ fields: ["rank"] }],
        access: { read: true },
      },
      texts: { schema: { s: { type: "string" } }, indexes: [{ fields: ["s"] }], access: { read: true } },
      seen: { schema: { n: { type: "integer" } }, access: { read: true } },
    } } } }`,
  });
  const inserts = Array.from({ length: 25 }, (_, index) => ({
    id: `i${String(index).padStart(2, "0")}`,
    name: `Item ${index % 5}`,
    rank: index % 4 === 0 ? null : index % 7,
    price: index / 2,
    live: index % 2 === 0,
    meta: { tags: [`t${index % 3}`], size: { w: index } },
  }));
  expect((await platform.service.post(`${P}/batch`, { inserts })).status).toBe(200);
});
afterAll(() => platform.stop());

const list = async (query: Record<string, string | number> = {}, path = P) => {
  const answer = await platform.get<ListAnswer>(path, { query });
  expect(answer.status).toBe(200);
  return answer.body;
};
const ids = (page: ListAnswer) => page.items.map((item) => item["id"]);
const refused = async (query: Record<string, string | number>) => {
  const answer = await platform.get<ErrorAnswer>(P, { query });
  expect(answer.status).toBe(400);
  expect(answer.body.code).toBe(400);
  return answer.body;
};

describe("lists", () => {
  test("[TB1] a list without paging parameters is the first page, with a cursor", async () => {
    const page = await list({ limit: 10 });
    expect(ids(page)).toEqual(Array.from({ length: 10 }, (_, index) => `i${String(index).padStart(2, "0")}`));
    expect(page).toMatchObject({ total: 25, page: 1, perPage: 10, hasMore: true });
    expect(page.cursor).toBeString();
    expect(await list()).toMatchObject({ total: 25, page: 1, perPage: 100, hasMore: false, cursor: null });
  });

  test("[TB2] offset 20 with limit 10 is page 3", async () => {
    expect(await list({ offset: 20, limit: 10 })).toMatchObject({
      total: 25,
      page: 3,
      perPage: 10,
      hasMore: null,
      cursor: null,
    });
    const page = await list({ page: 3, perPage: 10 });
    expect(ids(page)).toEqual(["i20", "i21", "i22", "i23", "i24"]);
    expect(page.page).toBe(3);
  });

  test("[TB3] cursor mode answers whether there is more, and no totals", async () => {
    const first = await list({ limit: 20 });
    const second = await list({ limit: 20, after: String(first.cursor) });
    expect(ids(second)).toEqual(["i20", "i21", "i22", "i23", "i24"]);
    expect(second).toMatchObject({ total: null, page: null, perPage: null, hasMore: false, cursor: null });
    const middle = await list({ limit: 5, after: "i04" });
    expect(middle).toMatchObject({ hasMore: true });
    expect(middle.cursor).toBeString();
  });

  test("[TB300] total=false counts nothing, in any mode", async () => {
    const first = await list({ limit: 10, total: "false" });
    expect(first).toMatchObject({ total: null, page: 1, perPage: 10, hasMore: true });
    expect(ids(first)).toEqual(ids(await list({ limit: 10 })));
    const rest = await list({ limit: 10, total: "false", after: String(first.cursor) });
    expect(rest.items[0]).toMatchObject({ id: "i10" });
    expect(await list({ limit: 25, total: "false" })).toMatchObject({ total: null, hasMore: false, cursor: null });
    expect(await list({ limit: 10, offset: 10, total: "false" })).toMatchObject({
      total: null,
      page: 2,
      hasMore: true,
    });
    expect(await list({ limit: 10, page: 3, total: "false" })).toMatchObject({ total: null, page: 3, hasMore: false });
    const filtered = await list({ limit: 12, total: "false", filter: '[["live","==",true]]' });
    expect(filtered).toMatchObject({ total: null, hasMore: true });
    expect(filtered.items).toHaveLength(12);
    expect(await list({ limit: 10, total: "true" })).toMatchObject({ total: 25 });
    expect(await list({ limit: 10, total: "true", after: "i01" })).toMatchObject({ total: null });
    expect((await refused({ total: "no" })).data).toHaveProperty("total");
  });

  test("[TB4] the two ways of paging exclude each other", async () => {
    const pairs: Record<string, string | number>[] = [
      { page: 1, after: "i01" },
      { page: 1, before: "i01" },
      { offset: 0, after: "i01" },
      { offset: 0, before: "i01" },
      { after: "i01", before: "i05" },
      { page: 1, offset: 0 },
    ];
    for (const query of pairs) await refused(query);
  });

  test("[TB5] limits have their bounds", async () => {
    for (const limit of ["0", "-1", "1.5", "ten", "1e3", " 5"]) {
      expect((await refused({ limit })).data).toHaveProperty("limit");
      await refused({ perPage: limit });
    }
    for (const query of [{ page: 0 }, { page: -1 }, { page: "x" }, { offset: -1 }, { offset: "1.5" }]) {
      await refused(query as Record<string, string | number>);
    }
    expect(await list({ limit: 5000 })).toMatchObject({ perPage: 1000 });
    expect(await list({ perPage: 3 })).toMatchObject({ perPage: 3 });
    for (const limit of ["10000000000000000", "9".repeat(400)])
      expect(await list({ limit })).toMatchObject({ perPage: 1000 });
    expect((await refused({ limit: `-${"9".repeat(400)}` })).data).toHaveProperty("limit");
    for (const name of ["page", "offset"]) {
      expect((await refused({ [name]: "1000000000000000" })).data).toMatchObject({ [name]: { code: "too_large" } });
    }
  });

  test("[TB6] sort, then id in its direction; nulls first ascending and last descending", async () => {
    const ascending = (await list({ sort: "rank" })).items.map((item) => [item["rank"], item["id"]] as const);
    const expected = [...ascending].sort(([a, x], [b, y]) => {
      const order = Number(a ?? -1) - Number(b ?? -1);
      return order !== 0 ? order : String(x) < String(y) ? -1 : 1;
    });
    expect(ascending).toEqual(expected);
    expect(ascending[0]?.[0]).toBeNull();
    const descending = (await list({ sort: "rank:desc" })).items.map((item) => [item["rank"], item["id"]] as const);
    expect(descending).toEqual(expected.toReversed());
    expect(descending.at(-1)?.[0]).toBeNull();
    const two = (await list({ sort: "name:desc,price:asc" })).items.map((item) => item["name"]);
    expect(two[0]).toBe("Item 4");
    expect((await refused({ sort: "nope" })).data).toHaveProperty("sort");
    await refused({ sort: "rank:up" });
    await refused({ sort: "rank:asc:desc" });
  });

  test("[TB7] a cursor survives its record, and before leads back", async () => {
    const table = "/api/db/shared/tables/seen";
    const inserts = Array.from({ length: 9 }, (_, index) => ({ id: `s${index}`, n: index % 3 }));
    await platform.service.post(`${table}/batch`, { inserts });
    for (const sort of ["n:desc", "id", "n,id:desc", "createdAt:desc"]) {
      const first = await list({ sort, limit: 4 }, table);
      const last = String(first.items.at(-1)?.["id"]);
      const rest = await list({ sort, limit: 9, after: String(first.cursor) }, table);
      await platform.service.delete(`${table}/${last}`);
      expect(ids(await list({ sort, limit: 9, after: String(first.cursor) }, table))).toEqual(ids(rest));
      await platform.service.post(table, {
        id: last,
        n: Number(first.items.at(-1)?.["n"]),
        createdAt: String(first.items.at(-1)?.["createdAt"]),
      });
    }
    const all = ids(await list({ sort: "n" }, table));
    const end = await list(
      { sort: "n", limit: 4, after: String((await list({ sort: "n", limit: 4 }, table)).cursor) },
      table,
    );
    const back = await list({ sort: "n", limit: 3, before: String(end.cursor) }, table);
    expect(ids(back)).toEqual(all.slice(4, 7));
    const further = await list({ sort: "n", limit: 3, before: String(back.cursor) }, table);
    expect(ids(further)).toEqual(all.slice(1, 4));
    expect(further.hasMore).toBe(true);
    const beginning = await list({ sort: "n", limit: 3, before: String(further.cursor) }, table);
    expect(ids(beginning)).toEqual(all.slice(0, 1));
    expect(beginning).toMatchObject({ hasMore: false, cursor: null });
    expect(ids(await list({ limit: 2, before: "s3" }, table))).toEqual(["s1", "s2"]);
  });

  test("[TB8] a malformed cursor and one of another sort are refused", async () => {
    const { cursor } = await list({ sort: "rank", limit: 2 });
    await refused({ after: String(cursor) });
    await refused({ sort: "rank:desc", after: String(cursor) });
    await refused({ sort: "rank", after: "garbage" });
    await refused({ sort: "rank", after: `${String(cursor).slice(0, -4)}` });
    await refused({ after: "c1~e30" });
    await refused({ before: `c2~${Buffer.from('["id:asc",null]').toString("base64url")}` });
    await refused({ after: "" });
    await refused({ before: "a/b" });
  });

  test("[TB9] fields narrows list and GET one", async () => {
    const page = await list({ fields: "name,rank", limit: 1 });
    expect(Object.keys(page.items[0] ?? {}).sort()).toEqual(["id", "name", "rank"]);
    const one = await platform.get(`${P}/i01?fields=price`);
    expect(one.body).toEqual({ id: "i01", price: 0.5 });
    await refused({ fields: "name,secret" });
    expect((await platform.get(`${P}/i01?fields=nope`)).status).toBe(400);
  });

  test("[TB18] count takes filter and orFilter", async () => {
    const count = async (query: Record<string, string>) =>
      (await platform.get<{ total: number }>(`${P}/count`, { query })).body;
    expect(await count({})).toEqual({ total: 25 });
    expect(await count({ filter: '[["live","==",true]]' })).toEqual({ total: 13 });
    expect(await count({ filter: '[["live","==",true]]', orFilter: '[["price","<",1],["price",">",11]]' })).toEqual({
      total: 2,
    });
    expect((await platform.get(`${P}/count?filter=nope`)).status).toBe(400);
  });
});

describe("filters", () => {
  const found = async (filter: unknown, orFilter?: unknown) =>
    ids(
      await list({
        filter: JSON.stringify(filter),
        ...(orFilter === undefined ? {} : { orFilter: JSON.stringify(orFilter) }),
      }),
    );

  test("[TB12] operators of order and equality, AND and OR", async () => {
    expect(await found([["price", "==", 3]])).toEqual(["i06"]);
    expect((await found([["price", "!=", 3]])).length).toBe(24);
    expect(await found([["price", ">", 11.5]])).toEqual(["i24"]);
    expect((await found([["price", ">=", 11.5]])).length).toBe(2);
    expect((await found([["price", "<", 1]])).length).toBe(2);
    expect((await found([["price", "<=", 1]])).length).toBe(3);
    expect((await found([["name", "contains", "m 3"]])).length).toBe(5);
    expect((await found([["name", "in", ["Item 1", "Item 2"]]])).length).toBe(10);
    expect((await found([["name", "not in", ["Item 1", "Item 2"]]])).length).toBe(15);
    expect(
      await found([
        ["price", ">", 10],
        ["live", "==", true],
      ]),
    ).toEqual(["i22", "i24"]);
    expect(
      await found(
        [["live", "==", false]],
        [
          ["price", "==", 0.5],
          ["price", "==", 1],
          ["price", "==", 1.5],
        ],
      ),
    ).toEqual(["i01", "i03"]);
    expect(
      await found([
        ["name", ">", "Item 3"],
        ["rank", "<", 2],
        ["rank", ">=", 0],
      ]),
    ).toEqual(["i14"]);
  });

  test("[TB13] filters compare with null", async () => {
    const nulls = await found([["rank", "==", null]]);
    expect(nulls.length).toBe(7);
    expect((await found([["rank", "!=", null]])).length).toBe(18);
    expect(await found([["rank", "!=", 1]])).toEqual(expect.arrayContaining(nulls));
    expect(await found([["rank", "not in", [1, 2]]])).toEqual(expect.arrayContaining(nulls));
    expect((await found([["rank", "in", [null, 1]]])).length).toBeGreaterThan(nulls.length);
    expect(await found([["rank", "not in", [null, 1]]])).not.toContain(nulls[0]);
  });

  test("[TB14] contains matches substrings, and empty lists match nothing", async () => {
    expect(await found([["name", "contains", "ITEM"]])).toEqual([]);
    expect((await found([["name", "contains", ""]])).length).toBe(25);
    expect((await found([["meta.tags", "contains", "t1"]])).length).toBe(8);
    expect(await found([["meta.tags", "contains", "t"]])).toEqual([]);
    expect(await found([["rank", "in", []]])).toEqual([]);
    expect((await found([["rank", "not in", []]])).length).toBe(25);
    expect(await found([["name", "contains", "%"]])).toEqual([]);
  });

  test("[TB400] startsWith, and the operators that ignore the case of A–Z", async () => {
    expect((await found([["name", "startsWith", "Item 1"]])).length).toBe(5);
    expect(await found([["name", "startsWith", "item"]])).toEqual([]);
    expect(await found([["name", "startsWith", "tem"]])).toEqual([]);
    expect((await found([["name", "startsWith", ""]])).length).toBe(25);
    expect((await found([["name", "istartsWith", "iTEM 1"]])).length).toBe(5);
    expect(await found([["name", "istartsWith", "TEM"]])).toEqual([]);
    expect((await found([["name", "icontains", "TEM 1"]])).length).toBe(5);
    expect((await found([["id", "startsWith", "i2"]])).length).toBe(5);
    expect(
      await found([
        ["id", "startsWith", "i2"],
        ["id", ">", "i22"],
      ]),
    ).toEqual(["i23", "i24"]);
    expect((await found([["meta.tags", "icontains", "T1"]])).length).toBe(8);
    expect(await found([["meta.tags", "icontains", "T"]])).toEqual([]);
    expect(await found([["meta.tags", "startsWith", "t"]])).toEqual([]);
    expect(await found([["rank", "==", 1]], [["name", "istartsWith", "ITEM 0"]])).toEqual(["i15"]);
    for (const [field, operator, value] of [
      ["rank", "startsWith", "1"],
      ["name", "icontains", 1],
      ["meta.tags", "icontains", 1],
      ["name", "istartsWith", null],
    ]) {
      const answer = await refused({ filter: JSON.stringify([[field, operator, value]]) });
      expect(answer.data?.["filter.0"]?.code).toBe("invalid_type");
    }
  });

  test("[TB401] other letters than A–Z keep their case, and every text has an end of its beginning", async () => {
    const P2 = "/api/db/shared/tables/texts";
    const texts = [
      "Äpfel",
      "äpfel",
      "ÄPFEL",
      "\u{10FFFF}\u{10FFFF}x",
      "\uD7FFa",
      "\uE000a",
      "nul\u0000Tail",
      "NUL\u0000tail",
      "%_\\",
      "z",
    ];
    const inserts = texts.map((s, index) => ({ id: `t${index}`, s }));
    expect((await platform.service.post(`${P2}/batch`, { inserts })).status).toBe(200);
    const texted = async (operator: string, value: string) =>
      ids(await list({ filter: JSON.stringify([["s", operator, value]]) }, P2));
    expect(await texted("icontains", "äPF")).toEqual(["t1"]);
    expect(await texted("istartsWith", "ÄPF")).toEqual(["t0", "t2"]);
    expect(await texted("startsWith", "\u{10FFFF}")).toEqual(["t3"]);
    expect(await texted("startsWith", "\u{10FFFF}\u{10FFFF}")).toEqual(["t3"]);
    expect(await texted("startsWith", "\uD7FF")).toEqual(["t4"]);
    expect(await texted("istartsWith", "nul\u0000t")).toEqual(["t6", "t7"]);
    expect(await texted("startsWith", "nul\u0000T")).toEqual(["t6"]);
    expect(await texted("icontains", "\u0000TAIL")).toEqual(["t6", "t7"]);
    expect(await texted("startsWith", "%")).toEqual(["t8"]);
    expect(await texted("startsWith", "_")).toEqual([]);
  });

  test("[TB15] JSON paths compare value and type", async () => {
    expect(await found([["meta.size.w", "==", 7]])).toEqual(["i07"]);
    expect(await found([["meta.size.w", "==", "7"]])).toEqual([]);
    expect((await found([["meta.size.w", ">", 20]])).length).toBe(4);
    expect((await found([["meta.size.h", "==", null]])).length).toBe(25);
    expect(await found([["meta.size", "==", { w: 3 }]])).toEqual(["i03"]);
    expect((await found([["meta.tags", "in", [["t0"], ["t1"]]]])).length).toBe(17);
  });

  test("[TB16] bad filters are named", async () => {
    const bad: [unknown, string][] = [
      [[["nope", "==", 1]], "nope"],
      [[["rank", "=", 1]], '"="'],
      [[["rank", "==", "1"]], "number"],
      [[["name", ">", 5]], "text"],
      [[["live", "==", 1]], "boolean"],
      [[["rank", "in", 5]], "array"],
      [[["rank", "in", ["a"]]], "number"],
      [[["rank", ">", null]], "null"],
      [[["rank", "contains", 1]], "text field"],
      [[["rank", "=="]], "[field, operator, value]"],
      [{ rank: 1 }, "array"],
      [[["rank", "in", Array(1001).fill(1)]], "1000"],
      [Array(101).fill(["rank", "==", 1]), "100"],
      [[["name.first", "==", "x"]], "name.first"],
    ];
    for (const [filter, word] of bad) {
      const answer = await platform.service.post<ErrorAnswer>(`${P}/batch-by-filter`, {
        action: "delete",
        filter: filter as never,
      });
      expect(answer.status).toBe(400);
      expect(answer.body.message).toContain(word);
    }
    expect((await refused({ filter: "{nope" })).message).toContain("JSON");
    expect((await refused({ filter: '[["name","==","\\ud800"]]' })).data).toHaveProperty(["filter.0"]);
    for (const beyond of ["1e999", "-1e999"]) {
      expect((await refused({ filter: `[["rank","<",${beyond}]]` })).data).toHaveProperty(["filter.0"]);
      expect((await refused({ orFilter: `[["rank","in",[1,${beyond}]]]` })).data).toHaveProperty(["orFilter.0"]);
    }
    expect((await refused({ orFilter: JSON.stringify(Array(6).fill(["rank", "==", 1])) })).message).toContain("5");
  });
});
