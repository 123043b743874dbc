import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type ListAnswer,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";
import { CONFIG, idsOf, insertFilms, PATH } from "./views-support.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await insertFilms(platform);
});
afterAll(() => platform.stop());

const logged = (): string => platform.stdout() + platform.stderr();
const list = async (view: string, query: Record<string, string | number | boolean> = {}) =>
  (await platform.get<ListAnswer>(`${PATH}/${view}`, { query })).body;
const where = (...filter: unknown[]) => ({ filter: JSON.stringify(filter) });

test("[TB860] a view is listed, filtered, sorted, paged and counted like a table", async () => {
  const { items, ...page } = await list("rated");
  expect(page).toEqual({ total: 3, page: 1, perPage: 100, hasMore: false, cursor: null });
  expect(items[0]).toEqual({
    ...{ id: "f1", title: "One", genre: "Comedy", filmId: "f1", ratings: 2, stars: 4.5, isLoved: true, given: [4, 5] },
    createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(items[2]).toMatchObject({ id: "f3", ratings: 0, stars: null, isLoved: null });
  expect(idsOf(await list("rated", { sort: "stars:desc" }))).toEqual(["f1", "f2", "f3"]);
  expect(idsOf(await list("rated", where(["ratings", ">", 0], { not: [["isLoved", "==", true]] })))).toEqual(["f2"]);
  expect(idsOf(await list("rated", where(["given", "contains", 4])))).toEqual(["f1"]);
  const either = { ...where(["title", "startsWith", "T"]), orFilter: JSON.stringify([["stars", "==", 1]]) };
  expect(idsOf(await list("rated", either))).toEqual(["f2"]);
  const related = {
    some: {
      table: "ratings",
      where: [
        ["filmId", "==", { field: "id" }],
        ["stars", ">=", 4],
      ],
    },
  };
  expect(await list("rated", where(related))).toMatchObject({ items: [{ id: "f1" }], total: 1 });
  const first = await list("rated", { sort: "genre,stars:desc", limit: 2 });
  expect([idsOf(first), first.total, first.hasMore]).toEqual([["f1", "f3"], 3, true]);
  expect(idsOf(await list("rated", { sort: "genre,stars:desc", limit: 2, after: first.cursor ?? "" }))).toEqual(["f2"]);
  expect(idsOf(await list("rated", { sort: "ratings", page: 2, limit: 2 }))).toEqual(["f1"]);
  expect((await list("rated", { limit: 1, total: false })).total).toBeNull();
  expect((await list("rated", { fields: "ratings", limit: 1 })).items).toEqual([{ id: "f1", ratings: 2 }]);
  expect((await platform.get(`${PATH}/rated/count`, { query: where(["ratings", ">", 0]) })).body).toEqual({ total: 2 });
  expect((await platform.get(`${PATH}/rated/count`)).body).toEqual({ total: 3 });
  const query = { select: "count(),sum(ratings)", groupBy: "genre", sort: "genre" };
  expect((await platform.get(`${PATH}/rated/aggregate`, { query })).body).toEqual({
    groups: [
      { genre: "Comedy", "count()": 2, "sum(ratings)": 2 },
      { genre: "Drama", "count()": 1, "sum(ratings)": 1 },
    ],
  });
});

test("[TB860] one record is read by its id, with fields and the records to which it refers", async () => {
  const one = await platform.get(`${PATH}/rated/f2`, { query: { fields: "stars", expand: "filmId" } });
  expect(one.body).toMatchObject({ id: "f2", stars: 1, expand: { filmId: { id: "f2", title: "Two" } } });
  expect(one.body["title"]).toBeUndefined();
  const missing = await platform.get<ErrorAnswer>(`${PATH}/rated/f9`);
  expect([missing.status, missing.body.message]).toEqual([404, 'There is no record "f9" in rated']);
  expect((await platform.head(`${PATH}/rated/f2`)).status).toBe(200);
  const unknown = await platform.get<ErrorAnswer>(`${PATH}/rated`, { query: where(["nothing", "==", 1]) });
  expect([unknown.status, Object.keys(unknown.body.data ?? {})]).toEqual([400, ["filter.0"]]);
});

test("[TB861] each answer is about the last commit: nothing of a view is kept", async () => {
  for (let stars = 1; stars <= 4; stars++) {
    await platform.service.post(`${PATH}/films?upsert=true`, { id: "fresh", title: "Fresh", genre: "Fresh" });
    await platform.service.post(`${PATH}/ratings`, { filmId: "fresh", stars });
    const found = await list("rated", where(["genre", "==", "Fresh"]));
    expect(found).toMatchObject({ total: 1, items: [{ ratings: stars }] });
    expect((await platform.get(`${PATH}/rated/fresh`)).body).toMatchObject({ ratings: stars });
    expect(await list("rated", { ...where(["genre", "==", "Fresh"]), limit: 1 })).toEqual(
      found.items.length === 1 ? { ...found, perPage: 1 } : found,
    );
  }
  expect((await platform.service.delete(`${PATH}/films/fresh`)).status).toBe(200);
  expect((await platform.get(`${PATH}/rated/fresh`)).status).toBe(404);
});

test("[TB861] a view that never ends delays nobody, and ends with its request", async () => {
  const gone = new AbortController();
  const endless = [`${PATH}/endless`, `${PATH}/endless/count`, `${PATH}/endless/1`, `${PATH}/endless/aggregate`].map(
    (path) => platform.fetch(path, { signal: gone.signal }).catch((error: unknown) => error),
  );
  const running = async () => {
    const text = await (await platform.service.fetch("/metrics")).text();
    return Number(/^platform_long_reads_running (\d+)/m.exec(text)?.[1]);
  };
  await until("the SQL runs", async () => (await running()) > 0);
  expect(idsOf(await list("films", { fields: "title", limit: 1 }))).toEqual(["f1"]);
  gone.abort();
  for (const answer of await Promise.all(endless)) expect(answer).toBeInstanceOf(Error);
  await until("nothing runs", async () => (await running()) === 0);
  expect(idsOf(await list("rated", { limit: 1 }))).toEqual(["f1"]);
});

test("[TB862] the read rule of the view decides, and those of its tables are not asked", async () => {
  await platform.service.post(`${PATH}/closed`, { id: "c1", secret: "s" });
  expect((await platform.get(`${PATH}/closed`)).status).toBe(401);
  expect((await list("secrets")).items).toEqual([{ id: "c1", secret: "s" }]);
  for (const path of ["keys", "keys/f1", "keys/count", "keys/aggregate"]) {
    expect((await platform.get(`${PATH}/${path}`)).status).toBe(401);
    expect((await platform.service.get(`${PATH}/${path}`)).status).toBe(200);
  }
  const ada = await signIn(platform);
  const asAda = platform.as(ada.token);
  expect((await asAda.get(`${PATH}/keys`)).status).toBe(403);
  expect(await list("comedies")).toMatchObject({ items: [{ id: "f1" }, { id: "f3" }], total: 2 });
  expect((await platform.get(`${PATH}/comedies/count`)).body).toEqual({ total: 2 });
  expect((await platform.get(`${PATH}/comedies/aggregate`)).body).toEqual({ groups: [{ "count()": 2 }] });
  const [hidden, missing] = await Promise.all(
    ["f2", "f9"].map((id) => platform.get<ErrorAnswer>(`${PATH}/comedies/${id}`)),
  );
  expect(hidden?.status).toBe(404);
  expect(hidden?.body.message.replace("f2", "f9")).toBe(missing?.body.message ?? "");
  await platform.service.post(`${PATH}/members`, { filmId: "f2", userId: ada.id });
  expect((await asAda.get<ListAnswer>(`${PATH}/mine`)).body).toMatchObject({ items: [{ id: "f2" }], total: 1 });
  expect((await asAda.get(`${PATH}/mine/f1`)).status).toBe(404);
  expect((await asAda.get(`${PATH}/mine/f2`)).status).toBe(200);
  expect((await platform.get(`${PATH}/mine`)).status).toBe(401);
  expect((await asAda.get(`${PATH}/each/f1`)).status).toBe(200);
  expect((await asAda.get(`${PATH}/each/f3`)).status).toBe(403);
  for (const path of ["each", "each/count", "each/aggregate"])
    expect((await asAda.get(`${PATH}/${path}`)).status).toBe(403);
});

test("[TB863] addresses of users are null in the SQL, also where it takes every column", async () => {
  const ada = await signIn(platform, { email: "ada@example.com" });
  const asAda = platform.as(ada.token);
  for (const caller of [platform, asAda, platform.service]) {
    const { items } = (await caller.get<ListAnswer>(`${PATH}/people`, { query: where(["id", "==", ada.id]) })).body;
    expect(items).toEqual([{ id: ada.id, email: null, displayName: null }]);
    const all = await caller.get<ListAnswer>(`${PATH}/mails`);
    expect([all.status, JSON.stringify(all.body).includes("ada@")]).toEqual([200, false]);
  }
  const found = await platform.get<ListAnswer>(`${PATH}/people`, { query: where(["email", "==", "ada@example.com"]) });
  expect(found.body.items).toEqual([]);
});

test("[TB863] a table without a schema has its fields in the column record", async () => {
  await platform.post(`${PATH}/notes`, { id: "t1", text: "hello" });
  expect((await list("texts", where(["id", "==", "t1"]))).items).toEqual([{ id: "t1", text: "hello" }]);
});

test("[TB864] what a view has not is refused in a sentence: search, near, relations to it, transactions, trials, sizes", async () => {
  const message = async (path: string, query = {}) => {
    const { status, body } = await platform.service.get<ErrorAnswer>(path, { query });
    return [status, body.message];
  };
  expect(await message(`${PATH}/rated/search`, { q: "one" })).toEqual([400, "rated has no full-text search"]);
  expect(await message(`${PATH}/rated`, { near: "title:1:1" })).toMatchObject([400, expect.stringContaining("title")]);
  const related = where({ some: { table: "rated", where: [["id", "==", { field: "id" }]] } });
  expect(await message(`${PATH}/films`, related)).toMatchObject([400, expect.stringContaining("or is a view")]);
  expect(await message("/api/admin/tables/shared/rated/size")).toEqual([400, "rated is a view, which stores nothing"]);
  const tried = { namespace: "shared", table: "rated", id: "f1", as: "anonymous" };
  const trial = await platform.service.post<ErrorAnswer>("/api/admin/rules/try", tried);
  expect([trial.status, trial.body.message]).toMatchObject([400, expect.stringContaining("is a view")]);
});

test("[TB864] rules that ask a view deny, and the log says why", async () => {
  for (const how of ["lookup", "relation"]) {
    expect((await platform.post(`${PATH}/asking`, { how })).status).toBe(401);
  }
  await until("the log has it", () => logged().includes("databases.shared.views.rated takes no lookups"));
  await until("the log has it", () => logged().includes("rated is not a table of shared, or is a view"));
});

test("[TB865] every write is 405 and says that a view is read-only, whoever sends it", async () => {
  const record = { id: "f1", title: "x" };
  const writes: [method: "post" | "patch" | "delete", path: string, body?: JsonObject][] = [
    ["post", "rated", record],
    ["post", "rated?upsert=true", record],
    ["patch", "rated/f1", { title: "x" }],
    ["delete", "rated/f1"],
    ["post", "rated/batch", { inserts: [record] }],
    ["post", "rated/batch", { deletes: ["f1"] }],
    ["post", "rated/batch?upsert=true", { inserts: [record] }],
    ["post", "rated/batch-by-filter", { action: "delete", filter: [["id", "==", "f1"]] }],
    ["post", "rated/batch-by-filter", { action: "update", filter: [["id", "==", "f1"]], update: { title: "x" } }],
  ];
  const ada = await signIn(platform);
  const asAda = platform.as(ada.token);
  for (const caller of [platform, asAda, platform.service]) {
    for (const [method, path, body] of writes) {
      const answer = await caller[method]<ErrorAnswer>(`${PATH}/${path}`, body);
      expect([path, answer.status, answer.headers.get("allow")]).toEqual([path, 405, "GET, HEAD, OPTIONS"]);
      expect(answer.body.message).toContain("rated is a view, which is read-only");
    }
  }
  for (const action of ["insert", "upsert"]) {
    const operations = [
      { action: "insert", table: "films", data: { id: "undone", title: "x" } },
      { action, table: "rated", data: record },
    ];
    expect((await platform.service.post("/api/db/shared/transaction", { operations })).status).toBe(405);
  }
  expect((await platform.get(`${PATH}/films/undone`)).status).toBe(404);
  expect((await platform.get(`${PATH}/films/f1`)).body).toMatchObject({ title: "One" });
});

test("[TB866] each instance has the views of its own tables", async () => {
  const at = (instance: string) => `/api/db/teams/${instance}/tables`;
  expect((await platform.get<ListAnswer>(`${at("none")}/open`)).body).toMatchObject({ items: [], total: 0 });
  expect((await platform.get(`${at("none")}/open/count`)).body).toEqual({ total: 0 });
  expect((await platform.get(`${at("none")}/open/t1`)).status).toBe(404);
  for (const [instance, id] of [
    ["a", "t1"],
    ["b", "t2"],
  ] as const) {
    expect((await platform.post(`${at(instance)}/tasks`, { id, isDone: false })).status).toBe(201);
    expect((await platform.post(`${at(instance)}/tasks`, { id: `${id} done`, isDone: true })).status).toBe(201);
  }
  expect((await platform.get<ListAnswer>(`${at("a")}/open`)).body.items).toMatchObject([{ id: "t1" }]);
  expect((await platform.get<ListAnswer>(`${at("b")}/open`)).body.items).toMatchObject([{ id: "t2" }]);
  expect((await platform.get(`${at("a")}/open/t1`)).status).toBe(200);
  expect((await platform.get(`${at("a")}/open/t2`)).status).toBe(404);
  expect((await platform.get(`${at("shut")}/open`)).status).toBe(401);
  expect((await platform.post(`${at("a")}/open`, { id: "x" })).status).toBe(405);
  expect((await platform.post(`${at("new")}/open`, { id: "x" })).status).toBe(405);
  const { body } = await platform.service.get<{ instances: { id: string }[] }>("/api/admin/instances/teams");
  expect(body.instances.map(({ id }) => id)).toEqual(["a", "b"]);
});

test("[TB867] what only the data shows is a logged 500: an id twice, a value of another type, null where none may be", async () => {
  const ids = ["same", "same"];
  for (const [place, as] of ids.entries()) await platform.post(`${PATH}/notes`, { id: `o${place}`, as, value: place });
  expect((await platform.get(`${PATH}/odd`)).status).toBe(500);
  await until("the log has it", () =>
    logged().includes('databases.shared.views.odd.sql gives the id \\"same\\" more than once'),
  );
  await platform.patch(`${PATH}/notes/o1`, { as: "other" });
  expect((await list("odd")).items).toMatchObject([
    { id: "other", value: 1 },
    { id: "same", value: 0 },
  ]);
  await platform.post(`${PATH}/notes`, { id: "n1", number: 2.5 });
  expect((await list("number")).items).toEqual([{ id: "n1", number: 2.5 }]);
  await platform.patch(`${PATH}/notes/n1`, { number: "two" });
  expect((await platform.get(`${PATH}/number/n1`)).status).toBe(500);
  await until("the log has it", () =>
    logged().includes("databases.shared.views.number.sql gives another value than number as number"),
  );
  await platform.patch(`${PATH}/notes/n1`, { number: null });
  expect((await platform.get(`${PATH}/number`)).status).toBe(500);
  await until("the log has it", () => logged().includes("databases.shared.views.number.sql gives null as number"));
});
