import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../src/kernel/json.ts";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../support/index.ts";

// Names that SQLite, JavaScript or the statements of this server use themselves.

const COLUMNS = [
  "value",
  "key",
  "type",
  "path",
  "json",
  "parent",
  "root",
  "atom",
  "fullkey",
  "element",
  "rank",
  "select",
];
const TABLES = ["page", "found", "element", "t", "f", "order", "tables", "main", "temp", "k", "r"];

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const query = (parameters: Record<string, unknown>) =>
  `?${new URLSearchParams(Object.entries(parameters).map(([name, value]): [string, string] => [name, typeof value === "string" ? value : JSON.stringify(value)]))}`;
const ids = async (at: string): Promise<unknown> => {
  const { status, body } = await platform.get<ListAnswer>(at);
  return status === 200 ? body.items.map((one) => one["id"]) : body;
};

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const access = { read: true, insert: true, update: true, delete: true };
      const json = Object.fromEntries(${JSON.stringify(COLUMNS)}.map((name) => [name, { type: "json" }]));
      const text = { title: { type: "string" }, tags: { type: "json" }, k: { type: "integer" }, r: { type: "integer" }, found: { type: "string" }, page: { type: "string" } };
      export default defineConfig({ databases: { shared: { tables: {
        columns: { schema: json, access },
        inherited: { access, schema: { valueOf: { type: "integer" }, toString: { type: "string", required: true },
          hasOwnProperty: { type: "string", min: 2, unique: true }, x: { type: "string" } } },
        free: { access },
        members: { schema: { value: { type: "json" }, members: { type: "json" } },
          access: { ...access, read: () => [["value", "contains", "me"]] } },
        ...Object.fromEntries(${JSON.stringify(TABLES)}.map((name) => [name, { schema: text, fts: ["title", "page"], access }])),
      } } } });`,
  });
});
afterAll(() => platform.stop());

test("[TB72] contains on fields that are called as the columns of json_each", async () => {
  const P = path("columns");
  for (const name of COLUMNS) {
    await platform.post(P, { id: name, [name]: ["x", { y: 1 }] });
    await platform.post(P, { id: `${name}-not`, [name]: ["z"] });
  }
  for (const name of COLUMNS) {
    expect([name, await ids(P + query({ filter: [[name, "contains", "x"]] }))]).toEqual([name, [name]]);
    expect([name, await ids(P + query({ orFilter: [[name, "contains", { y: 1 }]] }))]).toEqual([name, [name]]);
  }
  const inserts = [
    { id: "mine", value: ["me"], members: ["you"] },
    { id: "theirs", value: ["you"], members: ["me"] },
  ];
  await platform.service.post(`${path("members")}/batch`, { inserts });
  expect(await ids(path("members"))).toEqual(["mine"]);
});

test("[TB72] search, sort and filter in tables and over fields of any name", async () => {
  for (const table of TABLES) {
    const P = path(table);
    await platform.post(P, { id: "a", title: "hello world", tags: ["x"], k: 2, r: 1, found: "b", page: "one" });
    await platform.post(P, { id: "b", title: "hello hello", tags: ["y"], k: 1, r: 2, found: "a", page: "two" });
    const all = [
      await ids(`${P}/search?q=hello`),
      await ids(`${P}/search?q=hello&sort=k`),
      await ids(`${P}/search${query({ q: "hello", sort: "r:desc", limit: 1, filter: [["tags", "contains", "y"]] })}`),
      await ids(P + query({ filter: [["tags", "contains", "x"]], sort: "found" })),
    ];
    expect([table, ...all]).toEqual([table, ["b", "a"], ["b", "a"], ["b"], ["a"]]);
  }
});

test("[TB72] fields that are called as what every object inherits", async () => {
  const P = path("inherited");
  const codes = async (answer: Promise<{ status: number; body: ErrorAnswer }>) =>
    Object.fromEntries(Object.entries((await answer).body.data ?? {}).map(([name, { code }]) => [name, code]));
  const insert = (body: JsonObject) => platform.post<ErrorAnswer & JsonObject>(P, body);
  expect(await codes(insert({ x: "1" }))).toEqual({ toString: "required" });
  expect(await codes(insert({ toString: 5, valueOf: "x", hasOwnProperty: "a" }))).toEqual({
    toString: "invalid_type",
    valueOf: "invalid_type",
    hasOwnProperty: "too_short",
  });
  expect(await codes(insert({ toString: "a", isPrototypeOf: 1 }))).toEqual({ isPrototypeOf: "unknown_field" });
  const made = await insert({ id: "a", toString: "a" });
  expect(made).toMatchObject({ status: 201, body: { valueOf: null, hasOwnProperty: null } });
  expect((await platform.patch(`${P}/a`, { x: "2" })).body).toMatchObject({ toString: "a", x: "2" });
  expect((await platform.patch(`${P}/a`, { valueOf: { $op: "increment", value: 2 } })).body["valueOf"]).toBe(2);
  expect(await codes(platform.patch<ErrorAnswer>(`${P}/a`, { valueOf: "x" }))).toEqual({ valueOf: "invalid_type" });
  expect((await platform.post(`${P}?upsert=true&conflictTarget=hasOwnProperty`, { toString: "b" })).status).toBe(400);
  expect(await ids(P + query({ filter: [["valueOf", "==", 2]], sort: "toString" }))).toEqual(["a"]);

  const F = path("free");
  expect((await platform.post(F, { id: "a", hasOwnProperty: 5 })).body["hasOwnProperty"]).toBe(5);
  expect((await platform.patch(`${F}/a`, { valueOf: { $op: "increment", value: 1 } })).body["valueOf"]).toBe(1);
  expect(await ids(F + query({ filter: [["toString", "==", null]] }))).toEqual(["a"]);
  const proto = { headers: { "content-type": "application/json" }, body: '{"__proto__":{"x":1},"constructor":1}' };
  expect((await platform.fetch(F, { method: "POST", ...proto })).status).toBe(400);
});
