import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// Fields that stay as they were inserted.

const SCHEMA = `schema: {
  ownerId: { type: "string", fixed: true, required: true }, slug: { type: "string", unique: true, fixed: true },
  points: { type: "integer", fixed: true }, meta: { type: "json", fixed: true }, title: { type: "text" },
}`;
const OWN = `(auth) => auth !== null && [["ownerId", "==", auth.id]]`;

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: {
        docs: { ${SCHEMA}, access: { read: ${OWN}, insert: ${OWN}, update: ${OWN} } },
        boxes: { ${SCHEMA}, access: { insert: true, update: true } },
        stamped: { ${SCHEMA}, access: { read: true, insert: true, update: true }, hooks: {
          beforeUpdate: (_auth, record, changes) => ({ ...changes, points: (record.points ?? 0) + 1 }),
        } },
      } } },
      routes: (api) => api
        .post("/update", ({ app, body }) => app.db("shared").table("docs").update("d", body))
        .post("/as", async ({ app, auth, body, status }) => {
          try { return await app.as(auth).db("shared").table("docs").update("d", body); }
          catch (error) { return status(error.status, {}); }
        }, { access: true }),
    }`,
  });
  ann = await signIn(platform);
  for (const table of ["docs", "boxes", "stamped"]) await insert(table, "d");
});
afterAll(() => platform.stop());

const path = (table: string) => `/api/db/shared/tables/${table}`;
const META = { a: 1, b: [2] };
async function insert(table: string, id: string): Promise<void> {
  const record = { id, ownerId: ann.id, slug: `${table}-${id}`, points: 3, meta: META, title: "old" };
  expect((await ann.post(`${path(table)}`, record)).status).toBe(201);
}
const fault = async (answer: Promise<{ status: number; body: unknown }>) => {
  const { status, body } = await answer;
  return [status, ...Object.keys((body as { data?: object }).data ?? {})];
};

test.each<[string, JsonObject]>([
  ["ownerId", { ownerId: "bob" }],
  ["slug", { slug: null }],
  ["points", { points: 4 }],
  ["points", { points: { $op: "increment", value: 1 } }],
  ["slug", { slug: { $op: "deleteField" } }],
  ["meta", { meta: { a: 1 }, title: "new" }],
])("[TB620] a change of %s is 400 and named, by every way: %j", async (name, changes) => {
  const fails = [400, name];
  expect(await fault(ann.patch(`${path("docs")}/d`, changes))).toEqual(fails);
  const inBatch = [400, `updates.0.${name}`];
  expect(await fault(ann.post(`${path("docs")}/batch`, { updates: [{ id: "d", data: changes }] }))).toEqual(inBatch);
  const byFilter = { action: "update", filter: [["id", "==", "d"]] as JsonValue, data: changes };
  expect((await fault(ann.post(`${path("docs")}/batch-by-filter`, byFilter)))[0]).toBe(400);
  const operations = [{ table: "docs", action: "update", id: "d", data: changes }];
  expect((await fault(ann.post("/api/db/shared/transaction", { operations })))[0]).toBe(400);
  expect((await ann.post("/api/functions/as", changes)).status).toBe(400);
  const stored = (await ann.get<JsonObject>(`${path("docs")}/d`)).body;
  expect(stored).toMatchObject({ ownerId: ann.id, slug: "docs-d", points: 3, meta: META, title: "old" });
});

test("[TB620] an upsert keeps them too, and finds its record by one of them", async () => {
  const upsert = (record: JsonObject, target: string) =>
    ann.post(`${path("docs")}?upsert=true&conflictTarget=${target}`, { ownerId: ann.id, ...record });
  expect(await fault(upsert({ id: "d", points: 9 }, "id"))).toEqual([400, "points"]);
  expect((await upsert({ slug: "docs-d", title: "by slug" }, "slug")).status).toBe(200);
  const back = (await ann.get<JsonObject>(`${path("docs")}/d`)).body;
  expect((await ann.patch(`${path("docs")}/d`, { ...back, title: "old" })).status).toBe(200);
  expect((await ann.patch(`${path("docs")}/d`, { points: { $op: "increment", value: 0 } })).status).toBe(200);
});

test("[TB620] who may not read the record may not name them, whatever their value is", async () => {
  const change = (changes: JsonObject) => fault(ann.patch(`${path("boxes")}/d`, changes));
  expect(await change({ points: 3 })).toEqual([400, "points"]);
  expect(await change({ points: 4 })).toEqual([400, "points"]);
  expect(await change({ title: "new" })).toEqual([200]);
  const upsert = (record: JsonObject) =>
    fault(ann.post(`${path("boxes")}?upsert=true&conflictTarget=slug`, { slug: "boxes-d", ownerId: "x", ...record }));
  expect(await upsert({})).toEqual([400, "ownerId"]);
});

test("[TB620] a caller without the right is refused first", async () => {
  const bob = await signIn(platform);
  expect((await bob.patch(`${path("docs")}/d`, { points: 4 })).status).toBe(404);
  expect((await platform.patch(`${path("docs")}/d`, { points: 4 })).status).toBe(401);
});

test("[TB620] service keys, the server's own code and hooks change them", async () => {
  expect((await platform.service.patch(`${path("docs")}/d`, { points: 4 })).status).toBe(200);
  expect((await platform.service.post("/api/functions/update", { points: 5 })).status).toBe(200);
  expect((await ann.get<JsonObject>(`${path("docs")}/d`)).body["points"]).toBe(5);
  expect((await ann.patch<JsonObject>(`${path("stamped")}/d`, { title: "x" })).body["points"]).toBe(4);
});
