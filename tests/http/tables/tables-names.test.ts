import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

// Names that SQLite, JavaScript or the server's own statements use.

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
        free: { access },
        members: { schema: { value: { type: "json" }, members: { type: "json" } },
          access: { ...access, read: () => [["value", "contains", "me"]] } },
        ...Object.fromEntries(${JSON.stringify(TABLES)}.map((name) => [name, { schema: text, fts: ["title", "page"], access }])),
      } } } });`,
  });
});
afterAll(() => platform.stop());

test("[TB72] contains on fields named like the columns of json_each", async () => {
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

test("[TB72] fields named like inherited members of objects", async () => {
  const unknown = await platform.post<ErrorAnswer>(path("columns"), { toString: 1, valueOf: { $op: "deleteField" } });
  expect([unknown.status, Object.keys(unknown.body.data ?? {})]).toEqual([400, ["valueOf"]]);
  const both = await platform.post<ErrorAnswer>(path("columns"), { toString: 1, valueOf: 2 });
  expect(Object.entries(both.body.data ?? {}).map(([name, { code }]) => [name, code])).toEqual([
    ["toString", "unknown_field"],
    ["valueOf", "unknown_field"],
  ]);
  const F = path("free");
  expect((await platform.post(F, { id: "a", hasOwnProperty: 5 })).body["hasOwnProperty"]).toBe(5);
  expect((await platform.patch(`${F}/a`, { valueOf: { $op: "increment", value: 1 } })).body["valueOf"]).toBe(1);
  expect(await ids(F + query({ filter: [["toString", "==", null]] }))).toEqual(["a"]);
  const proto = { headers: { "content-type": "application/json" }, body: '{"__proto__":{"x":1},"constructor":1}' };
  expect((await platform.fetch(F, { method: "POST", ...proto })).status).toBe(400);
});
