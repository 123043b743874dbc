import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type ListAnswer,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const to = (table, column) => ({ type: "string", references: column === undefined ? { table } : { table, column } });
      const own = (auth) => auth !== null && [["owner", "==", auth.id]];
      const tables = {
        people: { schema: { name: { type: "string" }, slug: { type: "string", unique: true }, boss: to("people"), team: to("teams"),
                            note: { type: "json" }, admin: { type: "boolean" } }, access: { read: true } },
        teams: { schema: { name: { type: "string" } }, access: { read: true } },
        tasks: { schema: { title: { type: "text" }, author: to("people"), reviewer: to("people", "slug"), diary: to("diaries"), safe: to("safes"),
                           odd: to("odd"), n: { type: "integer" } }, fts: ["title"], access: { read: true } },
        comments: { schema: { taskId: to("tasks"), author: to("people"), text: { type: "text" }, n: { type: "integer" } },
                    indexes: [{ fields: ["taskId", "n"] }], access: { read: true } },
        diaries: { schema: { owner: { type: "string" }, text: { type: "text" }, by: to("people") }, access: { read: own } },
        entries: { schema: { owner: { type: "string" }, task: to("tasks"), text: { type: "text" } }, access: { read: own } },
        safes: { schema: { text: { type: "text" } } },
        inSafe: { schema: { task: to("tasks") } },
        odd: { schema: { n: { type: "integer" }, task: to("tasks"), text: { type: "text" } }, access: { read: (_auth, record) => record.n % 2 === 0 } },
        promised: { schema: { n: { type: "integer" }, task: to("tasks") }, access: { read: async (_auth, record) => record.n % 3 === 0 } },
        free: { access: { read: true } },
        ofFree: { schema: { to: to("free") }, access: { read: true } },
        looked: { schema: { n: { type: "integer" }, author: to("people") }, access: { read: (_auth, record) => record.n > 0 } },
        large: { schema: { text: { type: "text" }, task: to("tasks"), person: to("people") }, access: { read: true } },
        toLarge: { schema: { large: to("large") }, access: { read: true } },
      };
      export default defineConfig({
        serviceKeys: { tasksOnly: { key: "key-tasks-0123456789abcdef", scopes: ["db:shared:tasks:read", "db:shared:people:read"] } },
        databases: { shared: { tables },
          clubs: { instance: true, access: { create: true, open: true }, tables: {
            members: { schema: { name: { type: "string" }, leader: to("members") }, access: { read: true, insert: true } } } } },
      });`,
  });
  ann = await signIn(platform);
  const insert = async (table: string, inserts: JsonObject[]) => {
    for (let start = 0; start < inserts.length; start += 500) {
      const answer = await platform.service.post(`${path(table)}/batch`, {
        inserts: inserts.slice(start, start + 500),
      });
      expect([table, answer.status]).toEqual([table, 200]);
    }
  };
  await insert("teams", [{ id: "red", name: "Red" }]);
  await insert("people", [
    { id: "top", name: "Top", slug: "the-top", team: "red", note: { a: [1] }, admin: true },
    { id: "mid", name: "Mid", slug: "the-mid", boss: "top", team: "red", admin: false },
    { id: "low", name: "Low", slug: "the-low", boss: "mid" },
  ]);
  await insert("diaries", [
    { id: "d1", owner: ann.id, text: "mine", by: "low" },
    { id: "d2", owner: "other", text: "hidden", by: "low" },
  ]);
  await insert("safes", [{ id: "s1", text: "closed" }]);
  await insert("tasks", [
    { id: "t1", title: "Water", author: "low", reviewer: "the-top", diary: "d1", safe: "s1", n: 1 },
    { id: "t2", title: "Water again", author: "low", reviewer: "the-mid", diary: "d2", n: 2 },
    { id: "t3", title: "Fire", n: 3 },
  ]);
  const many = (count: number, of: (n: number) => JsonObject): JsonObject[] =>
    Array.from({ length: count }, (_, n) => ({ id: `r${String(n).padStart(4, "0")}`, ...of(n) }));
  await insert(
    "comments",
    many(230, (n) => ({ taskId: n % 2 === 0 ? "t1" : "t2", author: n % 3 === 0 ? "top" : "mid", n: -n })),
  );
  await insert(
    "entries",
    many(300, (n) => ({ owner: n >= 150 && n < 250 ? ann.id : "other", task: "t1" })),
  );
  await insert(
    "inSafe",
    many(3, () => ({ task: "t1" })),
  );
  await insert(
    "odd",
    many(301, (n) => ({ n: n < 150 ? 1 : n, task: "t1" })),
  );
  await insert(
    "promised",
    many(301, (n) => ({ n, task: n < 2 ? "t2" : "t1" })),
  );
  await platform.service.patch(`${path("tasks")}/t1`, { odd: "r0150" });
  await platform.service.patch(`${path("tasks")}/t2`, { odd: "r0151" });
  await insert("free", [{ id: "f1", expand: "its own", x: 1 }]);
  await insert("ofFree", [{ id: "o1", to: "f1" }]);
  await insert("looked", [{ id: "l1", n: 1, author: "low" }]);
});
afterAll(() => platform.stop());

type Expanded = Record<string, JsonObject & { items: JsonObject[]; hasMore: boolean; expand: Expanded }>;
type Item = JsonObject & { expand: Expanded };

const list = async (
  table: string,
  query: Record<string, string | number>,
  client: { get: TestPlatform["get"] } = platform,
) => {
  const answer = await client.get<Omit<ListAnswer, "items"> & { items: Item[] }>(path(table), { query });
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body;
};
const one = async (id: string, expand: string, client: { get: TestPlatform["get"] } = platform, table = "tasks") => {
  const answer = await client.get<Item>(`${path(table)}/${id}`, { query: { expand } });
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body;
};
const idsOf = (page: { items: readonly JsonObject[] } | undefined) => page?.items.map((item) => item["id"]);

test("[TB402] expand follows references, to any unique column, and several steps", async () => {
  const { items, total } = await list("tasks", { expand: "author,author.boss.team,reviewer" });
  expect(total).toBe(3);
  const [first, second, third] = items;
  const person = (await platform.get(`${path("people")}/low`)).body;
  expect(first?.expand["author"]).toMatchObject(person);
  expect(first?.expand["author"]?.expand["boss"]).toMatchObject({
    id: "mid",
    admin: false,
    expand: { team: { name: "Red" } },
  });
  expect(first?.expand["reviewer"]).toEqual((await platform.get(`${path("people")}/top`)).body as never);
  expect(second?.expand["reviewer"]).toMatchObject({ id: "mid" });
  expect(third?.expand as unknown).toEqual({ author: null, reviewer: null });
  expect(first).toMatchObject({ title: "Water", author: "low" });
});

test("[TB402] expand works on one record, in searches, in cursor mode, with fields, and in an instance", async () => {
  expect((await one("t1", "author")).expand["author"]).toMatchObject({ id: "low" });
  const picked = await platform.get<Item>(`${path("tasks")}/t1`, { query: { fields: "title", expand: "author.team" } });
  expect(Object.keys(picked.body)).toEqual(["id", "title", "expand"]);
  expect(picked.body.expand["author"]).toMatchObject({ id: "low", expand: { team: null } });

  const searched = await platform.get<{ items: Item[] }>(`${path("tasks")}/search`, {
    query: { q: "water", fields: "n", expand: "author" },
  });
  expect(searched.body.items.map(({ expand }) => expand["author"]?.["id"])).toEqual(["low", "low"]);
  expect(Object.keys(searched.body.items[0] ?? {})).toEqual(["id", "n", "highlights", "expand"]);

  const page = await list("tasks", { expand: "reviewer", limit: 1, after: "t1", fields: "title" });
  expect([page.hasMore, page.items[0]?.expand["reviewer"]?.["id"]]).toEqual([true, "mid"]);
  const before = await list("tasks", { expand: "author", limit: 1, before: "t2" });
  expect(before.items.map(({ id, expand }) => [id, expand["author"]?.["id"]])).toEqual([["t1", "low"]]);

  const club = "/api/db/clubs/one/tables/members";
  expect((await platform.get<ListAnswer>(club, { query: { expand: "leader" } })).body.items).toEqual([]);
  for (const body of [
    { id: "a", name: "A" },
    { id: "b", name: "B", leader: "a" },
  ])
    expect((await platform.post(club, body)).status).toBe(201);
  const members = (await platform.get<{ items: Item[] }>(club, { query: { expand: "leader,members(leader)" } })).body
    .items;
  expect(members.map(({ expand }) => [expand["leader"]?.["name"] ?? null, idsOf(expand["members(leader)"])])).toEqual([
    [null, ["b"]],
    ["A", []],
  ]);
});

test("[TB403] table(field) has the first 100 records by id that refer to the record, and hasMore", async () => {
  const { items } = await list("tasks", { expand: "comments(taskId),comments(taskId).author" });
  const [first, second, third] = items.map(({ expand }) => expand["comments(taskId)"]);
  const id = (n: number) => `r${String(n).padStart(4, "0")}`;
  expect(idsOf(first)).toEqual(Array.from({ length: 100 }, (_, n) => id(2 * n)));
  expect(idsOf(second)).toEqual(Array.from({ length: 100 }, (_, n) => id(2 * n + 1)));
  expect([first?.hasMore, second?.hasMore]).toEqual([true, true]);
  expect(third as unknown).toEqual({ items: [], hasMore: false });
  const [comment] = first?.items ?? [];
  expect((comment as Item).expand["author"]).toMatchObject({ id: "top", note: { a: [1] }, admin: true });
  expect((await one("f1", "ofFree(to)", platform, "free")).expand["ofFree(to)"]).toMatchObject({
    items: [{ id: "o1" }],
    hasMore: false,
  });
  expect((await one("o1", "to", platform, "ofFree")).expand["to"]).toMatchObject({ id: "f1", x: 1, expand: "its own" });
});

test("[TB404] each expanded record passes the read rule of its table, as if hidden ones did not exist", async () => {
  const expand = "diary,diary.by,entries(task),safe,inSafe(task),odd,odd(task),promised(task)";
  const [mine, others] = (await list("tasks", { expand }, ann)).items.map((item) => item.expand);
  expect(mine?.["diary"]).toMatchObject({ id: "d1", expand: { by: { id: "low" } } });
  expect(others?.["diary"]).toBeNull();
  expect(idsOf(mine?.["entries(task)"])?.length).toBe(100);
  expect(mine?.["entries(task)"]?.items.every(({ owner }) => owner === ann.id)).toBe(true);
  expect(mine?.["entries(task)"]?.hasMore).toBe(false);
  expect(mine?.["safe"]).toBeNull();
  expect(mine?.["inSafe(task)"] as unknown).toEqual({ items: [], hasMore: false });
  expect([mine?.["odd"]?.["id"], others?.["odd"]]).toEqual(["r0150", null]);
  // 76 of the 301 are even, behind 150 hidden ones.
  expect(mine?.["odd(task)"]?.items.map(({ n }) => n)).toEqual(Array.from({ length: 76 }, (_, n) => 150 + 2 * n));
  expect(mine?.["odd(task)"]?.hasMore).toBe(false);
  // 100 of those for t1 are divisible by three: 3, 6, … 300.
  expect(mine?.["promised(task)"]?.items.map(({ n }) => n)).toEqual(Array.from({ length: 100 }, (_, n) => 3 * (n + 1)));
  expect(mine?.["promised(task)"]?.hasMore).toBe(false);
  expect(others?.["promised(task)"]?.items.map(({ n }) => n)).toEqual([0]);

  const anonymous = (await one("t1", expand)).expand;
  expect([anonymous["diary"], anonymous["entries(task)"]] as unknown[]).toEqual([null, { items: [], hasMore: false }]);
  expect((await one("l1", "author", platform, "looked")).expand["author"]).toMatchObject({ id: "low" });
});

test("[TB404] a service key sees the tables of its scopes", async () => {
  const key = platform.withKey("key-tasks-0123456789abcdef");
  const { expand } = await one("t1", "author,diary,comments(taskId),author.team", key);
  expect(expand["author"]).toMatchObject({ id: "low", expand: { team: null } });
  expect([expand["diary"], expand["comments(taskId)"]] as unknown[]).toEqual([null, { items: [], hasMore: false }]);
  const root = (await one("t1", "diary,safe,inSafe(task),entries(task)", platform.service)).expand;
  expect([root["diary"]?.["id"], root["safe"]?.["id"], idsOf(root["inSafe(task)"])?.length]).toEqual(["d1", "s1", 3]);
  expect([idsOf(root["entries(task)"])?.length, root["entries(task)"]?.hasMore]).toEqual([100, true]);
});

test("[TB405] paths that are not references, too many and too deep ones are 400", async () => {
  const bad: [string, string][] = [
    ["nope", "unknown_field"],
    ["title", "unknown_field"],
    ["author.nope", "unknown_field"],
    ["comments", "unknown_field"],
    ["comments(author)", "unknown_field"],
    ["comments(taskId", "unknown_field"],
    ["__proto__", "unknown_field"],
    ["author,,reviewer", "unknown_field"],
    ["author.boss.boss.team", "too_long"],
    [Array(11).fill("author").join(","), "too_long"],
  ];
  for (const [expand, code] of bad) {
    for (const at of [path("tasks"), `${path("tasks")}/t1`, `${path("tasks")}/search?q=water`]) {
      const answer = await platform.get<ErrorAnswer>(
        `${at}${at.includes("?") ? "&" : "?"}expand=${encodeURIComponent(expand)}`,
      );
      expect([expand, answer.status, answer.body.data?.["expand"]?.code]).toEqual([expand, 400, code]);
    }
  }
  expect((await list("tasks", { expand: "author.boss.boss, author" })).items.length).toBe(3);
  expect((await list("tasks", { expand: "" })).items[0]).not.toHaveProperty("expand");
  // Rights are asked before the form.
  expect((await platform.get(`${path("safes")}?expand=nope`)).status).toBe(401);
});

test("[TB406] the expanded records of an answer have 8 MiB, repeated ones included; a large answer is complete", async () => {
  const text = "x".repeat(900_000);
  const large = Array.from({ length: 8 }, (_, n) => ({ id: `l${n}`, text, task: n < 4 ? "t1" : "t2", person: "top" }));
  for (const record of large) expect((await platform.service.post(path("large"), record)).status).toBe(201);
  for (let n = 0; n < 10; n++)
    expect((await platform.service.post(path("toLarge"), { id: `x${n}`, large: "l0" })).status).toBe(201);
  const found = (await list("tasks", { expand: "large(task)" })).items;
  expect(found.map(({ expand }) => idsOf(expand["large(task)"]))).toEqual([
    ["l0", "l1", "l2", "l3"],
    ["l4", "l5", "l6", "l7"],
    [],
  ]);
  expect(found[0]?.expand["large(task)"]?.items[0]?.["text"]).toBe(text);
  expect(idsOf((await one("top", "large(person)", platform, "people")).expand["large(person)"])?.length).toBe(8);
  expect(
    (await list("toLarge", { expand: "large", limit: 9 })).items.every(
      ({ expand }) => expand["large"]?.["text"] === text,
    ),
  ).toBe(true);
  const refused = await platform.get<ErrorAnswer>(path("toLarge"), { query: { expand: "large" } });
  expect([refused.status, refused.body.message]).toEqual([413, expect.stringContaining("request fewer")]);
  expect((await platform.post(`${path("large")}/batch`, { inserts: [] })).status).toBe(401);
});

test("[DB127] many large answers that expand large records at once are all answered", async () => {
  const answers = await Promise.all(
    Array.from({ length: 24 }, () =>
      platform.get<ListAnswer>(path("large"), { query: { expand: "task.large(task)", limit: 2 } }),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test("[TB407] expand in lists and searches of the server's own code", async () => {
  const own = await testPlatform({
    config: `
      const posts = { schema: { title: { type: "string" }, author: { type: "string", references: "people" } }, fts: ["title"] };
      const log = { schema: { text: { type: "string" } }, hooks: {
        async beforeInsert(_auth, _record, app) {
          const posts = app.db("shared").table("posts");
          const listed = await posts.list({ expand: "author" });
          const found = await posts.search("hello", { expand: "author" });
          return { text: listed.items[0].expand.author.name + " and " + found.items[0].expand.author.name };
        } } };
      export default { databases: { shared: { tables: { people: { schema: { name: { type: "string" } } }, posts, log } } } };`,
  });
  try {
    expect((await own.service.post(path("people"), { id: "p1", name: "Ann" })).status).toBe(201);
    expect((await own.service.post(path("posts"), { title: "Hello", author: "p1" })).status).toBe(201);
    expect((await own.service.post(path("log"), {})).body).toMatchObject({ text: "Ann and Ann" });
  } finally {
    await own.stop();
  }
});

test("[TB403, TB404] thousands of records that refer to a record, of which a filter hides most", async () => {
  const owned = (n: number) => ({
    id: `z${String(n).padStart(5, "0")}`,
    owner: n % 50 === 49 ? ann.id : "other",
    task: "t3",
  });
  for (let start = 0; start < 6_000; start += 500) {
    const inserts = Array.from({ length: 500 }, (_, n) => owned(start + n));
    expect((await platform.service.post(`${path("entries")}/batch`, { inserts })).status).toBe(200);
  }
  const mine = (await one("t3", "entries(task)", ann)).expand["entries(task)"];
  expect(idsOf(mine)).toEqual(Array.from({ length: 100 }, (_, n) => owned(50 * n + 49).id));
  expect(mine?.hasMore).toBe(true);
  const all = (await one("t3", "entries(task)", platform.service)).expand["entries(task)"];
  expect([idsOf(all)?.at(-1), all?.hasMore]).toEqual([owned(99).id, true]);
});
