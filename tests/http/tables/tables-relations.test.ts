import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type HttpClient,
  type ListAnswer,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

// Relations in the filters of requests: they ask what the caller may read, and nothing else.

const NOTES = `schema: { docId: { type: "string" }, authorId: { type: "string" }, text: { type: "text" }, rank: { type: "integer" } },
  indexes: [{ fields: ["docId"] }, { fields: ["authorId", "docId"] }]`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `import { field, some } from "platform";
      const mine = (auth) => auth !== null && [["authorId", "==", auth.id]];
      export default {
        serviceKeys: {
          docs: { key: "key-docs-0123456789abcdef", scopes: ["db:shared:docs:read"] },
          both: { key: "key-both-0123456789abcdef", scopes: ["db:shared:docs:read", "db:shared:mine:read"] },
        },
        databases: {
          shared: { tables: {
            docs: { schema: { title: { type: "text" }, rank: { type: "integer" } }, fts: ["title"], access: { read: true } },
            open: { ${NOTES}, access: { read: true } },
            mine: { ${NOTES}, access: { read: mine } },
            later: { ${NOTES}, access: { read: async (auth) => { await Bun.sleep(1); return mine(auth); } } },
            linked: { ${NOTES}, access: { read: (auth) => some("mine", [["docId", "==", field("docId")], ["authorId", "==", auth?.id ?? ""]]) } },
            closed: { ${NOTES}, access: {} },
            each: { ${NOTES}, access: { read: (auth, note) => note.authorId === auth?.id } },
          } },
          rooms: { instance: true, access: { create: true, open: true }, tables: {
            docs: { schema: { title: { type: "text" } }, access: { read: true, insert: true } },
            open: { ${NOTES}, access: { read: true, insert: true } },
          } },
        },
      };`,
  });
  [ann, bob] = [await signIn(platform), await signIn(platform)];
  for (const id of ["d1", "d2", "d3"]) await insert("docs", { id, title: `red ${id}`, rank: Number(id.slice(1)) });
  for (const table of ["open", "mine", "later", "linked", "closed", "each"]) {
    await insert(table, { id: "a", docId: "d1", authorId: ann.id, text: "ann's secret", rank: 1 });
    await insert(table, { id: "b", docId: "d2", authorId: bob.id, text: "bob's secret", rank: null });
  }
});
afterAll(() => platform.stop());

const PATH = "/api/db/shared/tables";
async function insert(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`${PATH}/${table}`, record)).status).toBe(201);
}
const onDoc = ["docId", "==", { field: "id" }];
const relation = (kind: "some" | "none", table: string, ...where: unknown[]) => ({
  [kind]: { table, where: [onDoc, ...where] },
});
/** The ids by every kind of read, which must agree; or the status. */
async function found(client: HttpClient, filter: unknown): Promise<string> {
  const query = { filter: JSON.stringify(filter) };
  const list = await client.get<ListAnswer>(`${PATH}/docs`, { query });
  const or = { orFilter: JSON.stringify([filter].flat()) };
  const answers = [
    list,
    await client.get(`${PATH}/docs`, { query: or }),
    await client.get(`${PATH}/docs`, { query: { ...query, sort: "rank:desc", limit: 1, total: "false" } }),
    await client.get(`${PATH}/docs/count`, { query }),
    await client.get(`${PATH}/docs/aggregate`, { query: { ...query, select: "count()" } }),
    await client.get(`${PATH}/docs/search`, { query: { ...query, q: "red" } }),
  ] as { status: number; body: { total?: number | null; groups?: JsonObject[] } }[];
  expect(answers.map(({ status }) => status)).toEqual(Array(answers.length).fill(list.status));
  if (list.status !== 200) return String(list.status);
  const ids = list.body.items?.map(({ id }) => String(id)) ?? [];
  const totals = answers.map(({ body }) => body.groups?.[0]?.["count()"] ?? body.total);
  expect(totals).toEqual([ids.length, ids.length, null, ids.length, ids.length, ids.length]);
  return ids.join();
}

test("[TB630] relations of requests ask the records that the caller may read, by every kind of read", async () => {
  const callers: HttpClient[] = [ann, bob, platform, platform.service];
  const all = async (filter: unknown) => {
    const answers: string[] = [];
    for (const client of callers) answers.push(await found(client, filter));
    return answers;
  };
  expect(await all([relation("some", "open")])).toEqual(["d1,d2", "d1,d2", "d1,d2", "d1,d2"]);
  expect(await all([relation("none", "open")])).toEqual(["d3", "d3", "d3", "d3"]);
  for (const table of ["mine", "later", "linked"]) {
    expect(await all([relation("some", table)])).toEqual(["d1", "d2", "", "d1,d2"]);
    expect(await all(relation("none", table))).toEqual(["d2,d3", "d1,d3", "d1,d2,d3", "d3"]);
    expect(await all([relation("some", table, ["text", "contains", "secret"])])).toEqual(["d1", "d2", "", "d1,d2"]);
    expect(await all([relation("some", table, ["authorId", "==", bob.id])])).toEqual(["", "d2", "", "d2"]);
    expect(await all([{ not: [relation("some", table, { not: [["rank", "==", 1]] })] }])).toEqual([
      "d1,d2,d3",
      "d1,d3",
      "d1,d2,d3",
      "d1,d3",
    ]);
  }
});

test("[TB630] a relation within a relation asks what the caller may read too", async () => {
  const nested = (table: string) => [
    { some: { table: "open", where: [onDoc, { some: { table, where: [["docId", "==", { field: "docId" }]] } }] } },
  ];
  expect([await found(ann, nested("mine")), await found(bob, nested("mine"))]).toEqual(["d1", "d2"]);
  expect([await found(platform, nested("mine")), await found(ann, nested("closed"))]).toEqual(["", ""]);
});

test("[TB631] of a table that the caller may not read nothing is told, whatever is asked", async () => {
  for (const where of [[onDoc], [["text", "contains", "secret"]], [["nothing", "==", 1]], [["text", ">", 7]], "odd"]) {
    expect(await found(ann, [{ some: { table: "closed", where } }])).toBe("");
    expect(await found(ann, [{ none: { table: "closed", where } }])).toBe("d1,d2,d3");
    expect(await found(platform.withKey("key-docs-0123456789abcdef"), [{ some: { table: "mine", where } }])).toBe("");
  }
  expect(await found(platform.withKey("key-both-0123456789abcdef"), [relation("some", "mine")])).toBe("d1,d2");
  // However the name is written.
  const escaped = (table: string) =>
    `[{"some":{"\\u0074able":"${table.replace("m", "\\u006d").replace("c", "\\u0063")}","where":[["docId","==",{"field":"id"}]]}}]`;
  const query = (table: string) => ({ query: { filter: escaped(table) } });
  expect((await ann.get<ListAnswer>(`${PATH}/docs`, query("mine"))).body.items?.map(({ id }) => id)).toEqual(["d1"]);
  expect((await ann.get<ListAnswer>(`${PATH}/docs`, query("closed"))).body.items).toEqual([]);
});

test("[TB631] a table whose rule looks at each record is not asked", async () => {
  expect(await found(ann, [relation("some", "each")])).toBe("403");
  expect(await found(platform.service, [relation("some", "each")])).toBe("d1,d2");
});

test("[TB630] no answer is kept for another caller, or for another state of the asked table", async () => {
  const filter = { and: [[relation("some", "mine")], [relation("none", "open", ["authorId", "==", "nobody"])]] };
  for (let time = 0; time < 4; time++)
    expect([await found(ann, filter), await found(bob, filter)]).toEqual(["d1", "d2"]);
  await insert("mine", { id: "c", docId: "d3", authorId: ann.id });
  expect([await found(ann, filter), await found(bob, filter)]).toEqual(["d1,d3", "d2"]);
  expect((await platform.service.delete(`${PATH}/mine/c`)).status).toBe(200);
  expect(await found(ann, filter)).toBe("d1");
});

test("[TB630] relations ask the instance's own file", async () => {
  const tables = (id: string) => `/api/db/rooms/${id}/tables`;
  for (const id of ["one", "two"]) {
    expect((await ann.post(`${tables(id)}/docs`, { id: "d1", title: id })).status).toBe(201);
  }
  expect((await ann.post(`${tables("two")}/open`, { docId: "d1" })).status).toBe(201);
  const query = { query: { filter: JSON.stringify([relation("some", "open")]) } };
  const totals = ["one", "two"].map(async (id) => (await ann.get<ListAnswer>(`${tables(id)}/docs`, query)).body.total);
  expect(await Promise.all(totals)).toEqual([0, 1]);
});

test.each<[unknown, string]>([
  [[{ some: { table: "open", where: [["rank", "==", 1]] } }], "filter.0.some"],
  [[{ some: { table: "nobody", where: [] } }], "filter.0.some.table"],
  [[{ some: { table: "open", where: [["docId", "==", { field: "nothing" }]] } }], "filter.0.some.where.0"],
  [[{ some: { table: "open", where: [["docId", "==", { field: "rank" }]] } }], "filter.0.some.where.0"],
  [[{ none: { table: "open", where: [onDoc, ["nothing", "==", 1]] } }], "filter.0.none.where.1"],
  [[{ some: { table: "open" }, none: {} }], "filter.0"],
  [[["title", "==", { field: "id" }]], "filter.0"],
])("[TB632] %j is 400 and named", async (filter, name) => {
  const query = { filter: JSON.stringify(filter) };
  const answer = await ann.get<{ data: object }>(`${PATH}/docs`, { query });
  expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, [name]]);
});

test("[TB632] a relation without an index names it", async () => {
  const query = { filter: JSON.stringify([{ some: { table: "open", where: [["rank", "==", 1]] } }]) };
  expect(JSON.stringify((await ann.get(`${PATH}/docs`, { query })).body)).toContain(
    'indexes: [{ fields: [\\"rank\\"] }]',
  );
});
