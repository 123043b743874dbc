import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// `context.sent`: the names of the members that a request has sent, in insert and update rules.

const SCHEMA = `schema: { title: { type: "text" }, state: { type: "string", default: "draft" }, n: { type: "integer" }, slug: { type: "string", unique: true } }`;

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
      const noted = [];
      const note = (rule, sent) => { noted.push([rule, sent]); return true; };
      const only = (sent, ...names) => sent !== null && sent.every((name) => names.includes(name));
      export default {
        databases: { shared: {
          tables: {
            docs: { ${SCHEMA}, access: {
              read: (_auth, _record, { sent }) => sent === null,
              insert: (_auth, _record, { sent }) => only(sent, "id", "title", "slug"),
              update: (_auth, _record, _next, { sent }) => only(sent, "id", "title", "slug", "updatedAt"),
              delete: (_auth, _record, { sent }) => sent === null,
            } },
            slow: { ${SCHEMA}, access: {
              read: true,
              insert: async (_auth, _record, context) => { await Bun.sleep(1); return only(context.sent, "id", "title"); },
              update: async (_auth, _record, _next, context) => { await Bun.sleep(1); return only(context.sent, "title"); },
            } },
            noted: { ${SCHEMA}, access: {
              read: true,
              insert: (_auth, record, { sent }) => note("insert", [sent, record.state]),
              update: (_auth, _record, _next, { sent }) => { sent.push("spoilt"); return note("update", sent); },
            } },
          },
        } },
        routes: (api) => api
          .get("/noted", () => noted.splice(0))
          .post("/as", ({ app, auth, body }) => app.as(auth).db("shared").table("docs").update("d", body).then(() => "", () => "refused"), { access: true }),
      };`,
  });
  ann = await signIn(platform);
  await platform.service.post(`${path("docs")}/batch`, { inserts: [{ id: "d", slug: "d" }, { id: "e" }] });
  await platform.service.post(`${path("slow")}/batch`, { inserts: [{ id: "d" }, { id: "e" }] });
});
afterAll(() => platform.stop());

const path = (table: string) => `/api/db/shared/tables/${table}`;
const status = async (answer: Promise<{ status: number }>) => (await answer).status;

test("[TB621] insert and update rules see which members were sent, by every way", async () => {
  const docs = path("docs");
  expect(await status(ann.post(docs, { title: "a" }))).toBe(201);
  // The default, sent or not, is in the record alike.
  expect(await status(ann.post(docs, { title: "a", state: "draft" }))).toBe(403);
  expect(await status(ann.patch(`${docs}/d`, { title: "b", updatedAt: "2020-01-01T00:00:00.000Z" }))).toBe(200);
  for (const changes of [{ state: "draft" }, { n: { $op: "increment", value: 1 } }, { n: { $op: "deleteField" } }]) {
    expect(await status(ann.patch(`${docs}/d`, changes))).toBe(403);
    expect(await status(ann.post(`${docs}/batch`, { updates: [{ id: "d", data: changes }] }))).toBe(403);
    const operations = [{ table: "docs", action: "update", id: "d", data: changes }];
    expect(await status(ann.post("/api/db/shared/transaction", { operations }))).toBe(403);
    expect((await ann.post("/api/functions/as", changes)).body).toEqual({ text: "refused" });
    const byFilter = { action: "update", filter: [["id", "==", "d"]], data: changes };
    const changed = await ann.post<JsonObject>(`${docs}/batch-by-filter`, byFilter as JsonObject);
    expect(changed.body["succeeded"]).toBe(0);
  }
  const upsert = (record: JsonObject) => status(ann.post(`${docs}?upsert=true&conflictTarget=slug`, record));
  expect([await upsert({ slug: "d", title: "c" }), await upsert({ slug: "d", state: "draft" })]).toEqual([200, 403]);
  expect([await upsert({ slug: "new", n: 1 }), await upsert({ slug: "new", title: "n" })]).toEqual([403, 201]);
});

test("[TB621] read and delete rules see null", async () => {
  expect(await status(ann.get(path("docs")))).toBe(200);
  expect(await status(ann.get(`${path("docs")}/d`))).toBe(200);
  expect(await status(ann.delete(`${path("docs")}/e`))).toBe(200);
});

test("[TB621] an awaited rule is asked for each operation with what that one sends", async () => {
  const updates = (...changes: JsonObject[]) =>
    status(ann.post(`${path("slow")}/batch`, { updates: changes.map((data) => ({ id: "d", data })) }));
  expect(await updates({ title: "x" }, { title: "x" })).toBe(200);
  // Both leave the record as it is.
  expect(await updates({ title: "x" }, { title: "x", state: "draft" })).toBe(403);
  expect(await status(ann.post(path("slow"), { id: "f", title: "x" }))).toBe(201);
  expect(await status(ann.post(path("slow"), { id: "g", state: "draft" }))).toBe(403);
});

test("[TB621] the list is the call's own, in the order of the body", async () => {
  // The start tries synchronous rules.
  await platform.service.get("/api/functions/noted");
  expect(await status(ann.post(path("noted"), { n: 1, id: "n", title: "t" }))).toBe(201);
  const changes = [{ title: "u" }, { state: "s", title: "v" }].map((data) => ({ id: "n", data }));
  expect(await status(ann.post(`${path("noted")}/batch`, { updates: changes }))).toBe(200);
  const { body } = await platform.service.get<unknown[]>("/api/functions/noted");
  expect(body).toEqual([
    ["insert", [["n", "id", "title"], "draft"]],
    ["update", ["title", "spoilt"]],
    ["update", ["state", "title", "spoilt"]],
  ]);
});
