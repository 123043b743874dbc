import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type HttpClient, type ListAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { until } from "../../support/until.ts";

/** A provider of embeddings: counts of letters as vectors. */
const asked: string[][] = [];
let isDown = false;
/** Number of calls after which calls are answered when `held` is released. */
let heldAfter = Number.POSITIVE_INFINITY;
const held: (() => void)[] = [];
const vectorOf = (text: string): number[] =>
  [..."abcdefghijklmnopqrstuvwxyz"].map((letter) => text.toLowerCase().split(letter).length - 0.99);
const provider = Bun.serve({
  port: 0,
  async fetch(request) {
    const texts = (await request.json()) as string[];
    asked.push(texts);
    if (asked.length > heldAfter) await new Promise<void>((resolve) => held.push(resolve));
    if (isDown) return new Response("the provider is down", { status: 500 });
    if (texts.some((text) => text.includes("refused"))) return new Response("no vector for this", { status: 400 });
    return Response.json(texts.map(vectorOf));
  },
});
const WITH = `async (app, texts) => {
  const answer = await fetch("${provider.url.href}", { method: "POST", body: JSON.stringify(texts) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}`;
const SCHEMA = `{ title: { type: "string" }, body: { type: "text" }, owner: { type: "string" }, n: { type: "integer" } }`;
const embed = (fields: string, more = ""): string => `embed: { fields: ${fields}, with: ${WITH}${more} }`;
const table = (embedding: string): string => `{ schema: ${SCHEMA}, fts: ["title", "body"], ${embedding},
  access: { read: (auth) => auth === null ? [["owner", "==", "all"]] : true, insert: true, update: true, delete: true } }`;
const configOf = (embedding: string): string => `{
  routes: (api) => api
    .get("/near/:id", ({ app, params }) => app.db("shared").table("notes").limit(2).fields("title").nearest(params.id))
    .get("/found/:q", ({ app, params }) => app.db("shared").table("notes").search(params.q, { mode: "hybrid" }))
    .get("/visited/:q", ({ app, params }) => app.as(null).db("shared").table("notes").search(params.q, { mode: "hybrid" }), {
      access: true,
    }),
  server: { trustProxy: true },
  rateLimits: { signup: { requests: 1000, window: 60 } },
  databases: {
    shared: { tables: {
      notes: ${table(embedding)},
      plain: { schema: ${SCHEMA}, fts: ["title"], access: { read: true } },
      bare: { schema: ${SCHEMA}, ${embed(`["title"]`)}, access: { read: true, insert: true } },
      judged: { schema: ${SCHEMA}, ${embed(`["title"]`)}, access: { read: (auth, record) => record.n === 1 } },
    } },
    rooms: { instance: true, access: { create: true, open: true }, tables: { notes: ${table(embedding)} } },
  },
}`;
const NOTES = "/api/db/shared/tables/notes";
const ALL = embed(`["title", "body"]`);

let platform: TestPlatform;
let ann: HttpClient;
beforeAll(async () => {
  platform = await testPlatform({ config: configOf(ALL) });
  ann = platform.as((await signIn(platform)).token);
});
afterAll(async () => {
  await platform.stop();
  await provider.stop(true);
});
beforeEach(() => {
  isDown = false;
});

const nearestTo = (path: string, id: string, client: HttpClient = platform.service) =>
  client.get<ListAnswer>(`${path}/${id}/nearest`, { query: { limit: 100 } });
/** Resolves when so many records have vectors, one of which is `id`. */
const embedded = (count: number, { path = NOTES, id }: { path?: string; id: string }): Promise<void> =>
  until("the vectors", async () => (await nearestTo(path, id)).body.items?.length === count - 1);
const insert = async (records: readonly JsonObject[], path = NOTES): Promise<void> => {
  const inserts = records.map((record) => ({ owner: "all", ...record }));
  expect(await platform.service.post(`${path}/batch`, { inserts })).toMatchObject({ status: 200 });
};
const clear = async (): Promise<void> => {
  const filter = [["id", "!=", ""]];
  expect(await platform.service.post(`${NOTES}/batch-by-filter`, { action: "delete", filter })).toMatchObject({
    status: 200,
  });
};
const hybrid = (q: string, client: HttpClient = platform.service, query: Record<string, string> = {}) =>
  client.get<ListAnswer & { total: number }>(`${NOTES}/search`, { query: { q, mode: "hybrid", ...query } });
const ids = ({ body }: { body: ListAnswer }): string[] => body.items.map(({ id }) => String(id));
test("[TB950] records get vectors after inserts, changes and batches, and lose them with their text", async () => {
  await clear();
  await insert([
    { id: "a", title: "aaab" },
    { id: "b", title: "aabb" },
    { id: "z", title: "zzz", body: "zz" },
    { id: "none", title: " " },
  ]);
  await embedded(3, { id: "a" });
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["b", "z"]);
  expect((await nearestTo(NOTES, "none")).body.items).toEqual([]);
  // A change of another field needs no vector; one of the text takes the former vector away at once.
  await platform.service.patch(`${NOTES}/b`, { n: 5 });
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["b", "z"]);
  await platform.service.patch(`${NOTES}/b`, { title: "zzzz" });
  await platform.service.patch(`${NOTES}/none`, { title: "aaab" });
  await embedded(4, { id: "a" });
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["none", ...["b", "z"]]);
  await platform.service.delete(`${NOTES}/none`);
  await platform.service.patch(`${NOTES}/z`, { title: null, body: null });
  await embedded(2, { id: "a" });
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["b"]);
  expect(asked.flat()).toContain("zzz\n\nzz");
});

test("[TB955] a hybrid search fuses the matches of the words with the nearest records", async () => {
  await clear();
  await insert([
    { id: "both", title: "abba" },
    { id: "word", title: "abba and very much other text of quite another kind" },
    { id: "near", title: "baba" },
    { id: "far", title: "zzzz" },
  ]);
  await embedded(4, { id: "far" });
  const found = await hybrid("abba");
  expect(found.body).toMatchObject({ total: 4, page: 1, perPage: 100, hasMore: null, cursor: null });
  expect(ids(found)).toEqual(["both", "word", "near", "far"]);
  expect(found.body.items[0]).toMatchObject({ highlights: { title: "<mark>abba</mark>" } });
  expect(found.body.items[2]).toMatchObject({ highlights: {} });
  expect(ids(await hybrid("abba", platform.service, { limit: "2", offset: "1" }))).toEqual(["word", "near"]);
  expect(ids(await hybrid("abba", platform.service, { limit: "2", page: "2", fields: "title" }))).toEqual([
    "near",
    "far",
  ]);
  expect((await hybrid("abba", platform.service, { offset: "10" })).body).toMatchObject({ items: [], total: 4 });
  expect(ids(await hybrid("abba", platform.service, { filter: `[["id","!=","word"]]` }))).toEqual([
    "both",
    "near",
    "far",
  ]);
  expect((await hybrid("   ")).body).toMatchObject({ items: [], total: 0 });
  // Without an index of words the nearest are found alone.
  await insert(
    [
      { id: "x", title: "xxy" },
      { id: "y", title: "yyyyx" },
    ],
    "/api/db/shared/tables/bare",
  );
  await embedded(2, { path: "/api/db/shared/tables/bare", id: "x" });
  const bare = await platform.get<ListAnswer>("/api/db/shared/tables/bare/search?q=yy&mode=hybrid");
  expect(ids(bare)).toEqual(["y", "x"]);
});

test("[TB955] what a hybrid search cannot answer is refused, and the parameter named", async () => {
  const refused = async (path: string) =>
    (await platform.service.get<JsonObject>(`/api/db/shared/tables/${path}`)).body;
  expect(await refused("plain/search?q=a&mode=hybrid")).toMatchObject({
    code: 400,
    data: { mode: { code: "invalid_value" } },
  });
  expect(await refused("notes/search?q=a&mode=hybrid&sort=title")).toMatchObject({ code: 400, data: { sort: {} } });
  expect(await refused("notes/search?q=a&mode=meaning")).toMatchObject({ code: 400, data: { mode: {} } });
  expect(await refused("notes/search?mode=hybrid")).toMatchObject({ code: 400, data: { q: {} } });
  expect(await refused("notes/search?q=a&mode=hybrid&page=1&offset=1")).toMatchObject({
    code: 400,
    data: { page: {} },
  });
  expect(await refused("plain/a/nearest")).toMatchObject({ code: 400 });
  expect(await refused("notes/a/nearest?limit=101")).toMatchObject({ code: 400, data: { limit: {} } });
  expect(await refused("notes/missing/nearest")).toMatchObject({ code: 404 });
  expect(await refused("nowhere/missing/nearest")).toMatchObject({ code: 404 });
  expect((await platform.get("/api/db/shared/tables/judged/search?q=a&mode=hybrid")).status).toBe(401);
  expect((await ann.get("/api/db/shared/tables/judged/x/nearest")).status).toBe(403);
});

test("[TB956] hidden records change neither the places of others nor their number", async () => {
  await clear();
  const shown = Array.from({ length: 12 }, (_, at) => ({ id: `s${at}`, title: `abba ${"c".repeat(at)}` }));
  await insert([...shown, { id: "zz", title: "zzzz" }]);
  await embedded(13, { id: "zz" });
  const answers = async () =>
    JSON.stringify([
      (await hybrid("abba", platform)).body,
      (await hybrid("abba", platform, { limit: "3", page: "2" })).body,
      (await hybrid("hidden", platform)).body,
      (await nearestTo(NOTES, "s3", platform)).body,
    ]);
  const before = await answers();
  // More than a search takes into account of either kind, all better matches than those that are shown.
  const hidden = Array.from({ length: 250 }, (_, at) => ({ id: `h${at}`, title: "abba hidden", owner: "ann" }));
  await insert(hidden);
  await until("the vectors", async () => (await nearestTo(NOTES, "h249")).body.items.length === 100);
  expect(await answers()).toBe(before);
  expect((await nearestTo(NOTES, "h1", platform)).body as unknown).toEqual(
    JSON.parse(JSON.stringify((await nearestTo(NOTES, "missing", platform)).body).replaceAll("missing", "h1")),
  );
  expect((await hybrid("abba", ann)).body.total).toBeGreaterThan(13);
});

test("[TB957] a user has 60 hybrid searches a minute, and a server's key as many as it wants", async () => {
  await insert([{ id: "one", title: "one" }]);
  const bob = platform.as((await signIn(platform)).token);
  const statuses: number[] = [];
  for (let at = 0; at < 61; at++) statuses.push((await hybrid("one", bob)).status);
  expect([statuses.slice(0, 60).every((status) => status === 200), statuses[60]]).toEqual([true, 429]);
  const limited = await bob.fetch(`${NOTES}/search?q=one&mode=hybrid`);
  expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await bob.get(`${NOTES}/search?q=one`)).status).toBe(200);
  for (let at = 0; at < 61; at++) expect((await hybrid("one")).status).toBe(200);
});

test("[TB958] the vector of a searched text is kept for its caller, and a failure is not", async () => {
  const told = (text: string) => asked.filter((texts) => texts.includes(text)).length;
  for (let at = 0; at < 3; at++) await hybrid("asked often");
  expect(told("asked often")).toBe(1);
  await hybrid("asked often", ann);
  expect(told("asked often")).toBe(2);
  isDown = true;
  const failed = await hybrid("asked in vain");
  expect([failed.status, JSON.stringify(failed.body).includes("provider")]).toEqual([503, false]);
  isDown = false;
  expect((await hybrid("asked in vain")).status).toBe(200);
});

test("[TB957] [TB958] app.as(null) asks for the client of the request: its searches, and its kept vectors", async () => {
  const visited = async (address: string, q: string): Promise<number> =>
    (await platform.get(`/api/functions/visited/${q}`, { headers: { "x-forwarded-for": address } })).status;
  const statuses: number[] = [];
  for (let at = 0; at < 61; at++) statuses.push(await visited("203.0.113.1", "visited"));
  expect([statuses.slice(0, 60).every((status) => status === 200), statuses[60]]).toEqual([true, 429]);
  expect(await visited("203.0.113.2", "visited")).toBe(200);
  expect(asked.filter((texts) => texts.includes("visited")).length).toBe(2);
});

test("[TB959] nearest answers records in the order of their similarity, without the record itself", async () => {
  await clear();
  await insert([
    { id: "a", title: "aaab" },
    { id: "b", title: "aab" },
    { id: "c", title: "aabbb", n: 1 },
    { id: "z", title: "z" },
  ]);
  await embedded(4, { id: "a" });
  const found = (await nearestTo(NOTES, "a")).body;
  expect(found).toMatchObject({ total: null, page: 1, perPage: 100, hasMore: null, cursor: null });
  const similarities = found.items.map((item) => Number(item["similarity"]));
  expect(similarities).toEqual([...similarities].sort((one, other) => other - one));
  expect(similarities.every((one) => one > -1 && one < 1)).toBe(true);
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["b", "c", "z"]);
  const get = (query: Record<string, string>) => platform.service.get<ListAnswer>(`${NOTES}/a/nearest`, { query });
  expect(ids(await get({ limit: "1" }))).toEqual(["b"]);
  expect(ids(await get({ filter: `[["n","==",1]]` }))).toEqual(["c"]);
  expect(Object.keys((await get({ fields: "title", limit: "1" })).body.items[0] ?? {}).sort()).toEqual([
    "id",
    "similarity",
    "title",
  ]);
});

test("[TB952] records that come while the function fails get their vectors when it works again", async () => {
  await clear();
  await insert([{ id: "first", title: "first" }]);
  isDown = true;
  await insert([
    { id: "later", title: "later" },
    { id: "bad", title: "refused" },
  ]);
  await until("the vectors", async () => asked.some((texts) => texts.includes("later")));
  expect(ids(await nearestTo(NOTES, "first"))).toEqual([]);
  isDown = false;
  await embedded(2, { id: "first" });
  expect(ids(await nearestTo(NOTES, "first"))).toEqual(["later"]);
});

test("[TB962] each instance has its own vectors, and an instance that does not exist has none", async () => {
  const path = (instance: string) => `/api/db/rooms/${instance}/tables/notes`;
  await insert(
    [
      { id: "a", title: "aab" },
      { id: "b", title: "abb" },
    ],
    path("one"),
  );
  await insert(
    [
      { id: "a", title: "aab" },
      { id: "c", title: "aabb" },
    ],
    path("two"),
  );
  await embedded(2, { path: path("one"), id: "a" });
  await embedded(2, { path: path("two"), id: "a" });
  expect(ids(await nearestTo(path("one"), "a"))).toEqual(["b"]);
  expect(ids(await nearestTo(path("two"), "a"))).toEqual(["c"]);
  const none = await platform.service.get<ListAnswer>(`${path("three")}/search?q=a&mode=hybrid`);
  expect(none.body.items).toEqual([]);
  expect((await nearestTo(path("three"), "a")).status).toBe(404);
});

test("[TB963] a job shows how many records have vectors", async () => {
  await clear();
  await insert([
    { id: "a", title: "aab" },
    { id: "b", title: "abb" },
  ]);
  await embedded(2, { id: "a" });
  const progress = async () => {
    const { body } = await platform.service.get<{ jobs: JsonObject[] }>("/api/admin/jobs?name=platform.embed");
    return body.jobs
      .filter(({ data }) => (data as JsonObject)["which"] === "next")
      .map(({ state, data }) => ({ state, data }));
  };
  const data = { namespace: "shared", instanceId: null, table: "notes", which: "next", records: 2, embedded: 2 };
  await until("the job has ended", async () => Bun.deepEquals((await progress())[0], { state: "done", data }));
});

test("[TB961] other fields, another function and another model make all vectors again; nothing else does", async () => {
  await clear();
  await insert([
    { id: "a", title: "aaab", body: "zzzzzzzz" },
    { id: "b", title: "aabb", body: "bbbb" },
    { id: "z", title: "yyyy", body: "zzzzzzzz" },
  ]);
  await embedded(3, { id: "a" });
  const restarted = async (embedding: string): Promise<number> => {
    const before = asked.length;
    await platform.restart({ config: configOf(embedding) });
    await embedded(3, { id: "a" });
    return asked.length - before;
  };
  expect(await restarted(ALL)).toBe(0);
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["z", "b"]);
  expect(await restarted(embed(`["title"]`))).toBe(1);
  expect(ids(await nearestTo(NOTES, "a"))).toEqual(["b", "z"]);
  expect(await restarted(embed(`["title"]`, `, model: "letters"`))).toBe(1);
  expect(
    await restarted(embed(`["title"]`, `, model: "letters", batch: 2`).replace("answer.json()", "(answer.json())")),
  ).toBe(0);
  expect(await restarted(embed(`["title"]`, `, model: "letters 2", batch: 2`))).toBe(2);
  // Without vectors nothing of them is left, and an addition begins anew.
  await platform.restart({ config: configOf("maxRecordSize: 100000") });
  expect((await hybrid("a")).status).toBe(400);
  expect(await restarted(ALL)).toBe(1);
});

test("[TB964] the server's own code searches by meaning, and finds the nearest records", async () => {
  await clear();
  await insert([
    { id: "a", title: "aaab" },
    { id: "b", title: "aab" },
    { id: "c", title: "aabbb" },
    { id: "z", title: "z" },
  ]);
  await embedded(4, { id: "a" });
  const near = await platform.service.get<JsonObject[]>("/api/functions/near/a");
  expect(near.body.map((item) => [item["id"], Object.keys(item).sort()])).toEqual([
    ["b", ["id", "similarity", "title"]],
    ["c", ["id", "similarity", "title"]],
  ]);
  const found = await platform.service.get<ListAnswer>("/api/functions/found/aab");
  expect(ids(found)[0]).toBe("b");
  expect(ids(found)).toHaveLength(4);
});

test("[TB960] a SIGKILL at any time loses no vector, and leaves none of a record that has changed or gone", async () => {
  await clear();
  const records = Array.from({ length: 40 }, (_, at) => ({ id: `k${at}`, title: `${"a".repeat(at)} k` }));
  for (let round = 0; round < 4; round++) {
    // The server dies while a call is under way, and others have been answered.
    heldAfter = asked.length + round;
    await insert(records.slice(round * 10, round * 10 + 10));
    await platform.service.patch(`${NOTES}/k${round * 10}`, { title: "changed" });
    expect((await platform.service.delete(`${NOTES}/k${round * 10 + 1}`)).status).toBe(200);
    await until("a call is under way", () => held.length > 0);
    await platform.kill("SIGKILL");
    heldAfter = Number.POSITIVE_INFINITY;
    for (const release of held.splice(0)) release();
    await platform.restart({ config: configOf(embed(`["title"]`, `, model: "kill", batch: 4`)) });
  }
  await embedded(36, { id: "k2" });
  const near = (await nearestTo(NOTES, "k2")).body.items;
  for (const { id, title, similarity } of near) {
    const [own, other] = [vectorOf("aa k"), vectorOf(String(title))];
    const dot = own.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);
    expect([id, Number(similarity)]).toEqual([
      id,
      expect.closeTo(dot / (Math.hypot(...own) * Math.hypot(...other)), 4),
    ]);
  }
}, 120_000);

test("[TB951] a record whose text a migration empties or changes is no longer found by the former one", async () => {
  await platform.restart({ config: configOf(ALL) });
  await clear();
  await insert([
    { id: "a", title: "aaab" },
    { id: "emptied", title: "zzzq", body: "zz" },
    { id: "changed", title: "zzzq" },
  ]);
  await embedded(3, { id: "a" });
  const up = `UPDATE notes SET body = NULL, title = CASE id WHEN 'changed' THEN 'refused' END WHERE id <> 'a'`;
  const migrations = JSON.stringify([{ version: 1, description: "redact", up }]);
  await platform.restart({ config: configOf(`${ALL}, migrations: ${migrations}`) });
  await embedded(1, { id: "a" });
  expect((await nearestTo(NOTES, "emptied")).body.items).toEqual([]);
  expect(ids(await hybrid("zzzq"))).toEqual(["a"]);
});
