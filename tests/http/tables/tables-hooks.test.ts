import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const access = { read: true, insert: true, update: true, delete: true };
      const spoil = (record) => { if (record.doc) { record.doc.spoilt = true; record.doc.list?.push("spoilt") } record.title = "spoilt"; return true };
      const hooks = {
        beforeUpdate: (_auth, record, changes) => {
          if (changes.title === "undefined") return { ...changes, title: undefined };
          if (changes.title === "stays") return { title: "stays" };
          if (changes.title === "asked") return { ...changes, title: JSON.stringify(changes) };
        },
        beforeInsert: (_auth, record) => (record.title === "undefined" ? { ...record, title: undefined, other: undefined } : undefined) };
      const tell = async (what, auth, { id, n }, app) => { await app.db("shared").table("heard").insert({ what, by: auth?.id ?? null, of: id, n }) };
      const stamp = { n: 0 };
      const stamped = (record) => { stamp.n++; return { ...record, stamp }; };
      export default defineConfig({ databases: { shared: { tables: {
        stamped: { schema: { stamp: { type: "json" } }, access, 
          hooks: { beforeInsert: (_auth, record) => stamped(record), beforeUpdate: (_auth, _record, changes) => stamped(changes) } },
        strict: { schema: { title: { type: "string", required: true }, other: { type: "string" }, n: { type: "integer" } }, access, hooks },
        free: { access, hooks },
        spoilt: { schema: { title: { type: "string" }, doc: { type: "json" } },
          access: { read: true, insert: (_auth, record) => spoil(record), update: (_auth, record, next) => spoil(record) && spoil(next), delete: true } },
        spoiltFree: { access: { ...access, insert: (_auth, record) => spoil(record) }, hooks: {
          beforeInsert: (_auth, record) => { spoil(record) }, beforeUpdate: (_auth, record, changes) => { spoil(record); spoil(changes) },
          afterInsert: (_auth, record) => { spoil(record) }, afterUpdate: (_auth, record, before) => { spoil(record); spoil(before) } } },
        told: { access, hooks: {
          afterInsert: (auth, record, app) => tell("insert", auth, record, app),
          afterUpdate: (auth, record, before, app) => tell("update", auth, { id: before.id, n: [before.n, record.n] }, app),
          afterDelete: (auth, record, app) => tell("delete", auth, record, app) } },
        heard: {},
      } } } });`,
  });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

test("[TB75] undefined members of a hook's result are left out", async () => {
  const P = path("strict");
  await platform.post(P, { id: "a", title: "one", other: "x" });
  const changed = await platform.patch(`${P}/a`, { title: "undefined", n: 1 });
  expect(changed).toMatchObject({ status: 200, body: { title: "one", other: "x", n: 1 } });
  const missing = await platform.post<ErrorAnswer>(P, { title: "undefined" });
  expect(missing).toMatchObject({ status: 400, body: { data: { title: { code: "required" } } } });
  const free = await platform.post(path("free"), { id: "a", title: "undefined", n: 1 });
  expect(Object.keys(free.body).sort()).toEqual(["createdAt", "id", "n", "updatedAt"]);
});

test("[TB75] a field to be deleted is null in the changes, and the hook's result decides", async () => {
  const P = path("free");
  await platform.post(P, { id: "b", title: "one", n: 1, m: 2 });
  const gone = { n: { $op: "deleteField" } };
  const asked = await platform.patch(`${P}/b`, { title: "asked", ...gone });
  expect(asked.body["title"]).toBe('{"title":"asked","n":null}');
  expect(asked.body).not.toHaveProperty("n");
  await platform.patch(`${P}/b`, { n: 5 });
  const stays = await platform.patch(`${P}/b`, { title: "stays", m: 9, ...gone });
  expect(stays.body).toMatchObject({ title: "stays", n: 5, m: 2 });
});

test("[TB76] an object that a hook returns again and again is answered as it is written", async () => {
  const P = path("stamped");
  const [a, b] = [{ id: "a" }, { id: "b" }];
  const made = await platform.post<{ inserted: JsonObject[] }>(`${P}/batch`, { inserts: [a, b] });
  expect(made.body.inserted.map((record) => record["stamp"])).toEqual([{ n: 1 }, { n: 2 }]);
  const updates = [a, b].map(({ id }) => ({ id, data: { stamp: null } }));
  const changed = await platform.post<{ updated: JsonObject[] }>(`${P}/batch`, { updates });
  expect(changed.body.updated.map((record) => record["stamp"])).toEqual([{ n: 3 }, { n: 4 }]);
  expect((await platform.get(`${P}/a`)).body["stamp"]).toEqual({ n: 3 });
});

test("[TB76] what a rule or hook does to its arguments is not written, answered or announced", async () => {
  const doc: JsonObject = { a: 1, list: ["x"] };
  for (const table of ["spoilt", "spoiltFree"]) {
    const P = path(table);
    const made = await platform.post(P, { id: "a", title: "one", doc });
    expect([table, made.status, made.body["title"], made.body["doc"]]).toEqual([table, 201, "one", doc]);
    const changed = await platform.patch(`${P}/a`, { doc: { ...doc, b: 2 } });
    expect([table, changed.body["title"], changed.body["doc"]]).toEqual([table, "one", { ...doc, b: 2 }]);
    expect((await platform.get(`${P}/a`)).body["doc"]).toEqual({ ...doc, b: 2 });
  }
});

test("[TB58] hooks after a write get who wrote, and the record before and after it, however it was written", async () => {
  const P = path("told");
  const callers = [
    { name: "ann", client: ann, by: ann.id },
    { name: "nobody", client: platform, by: null },
    { name: "key", client: platform.service, by: null },
  ];
  interface Step {
    path: string;
    body: JsonObject;
  }
  const transaction = (operation: JsonObject): Step => ({
    path: "/api/db/shared/transaction",
    body: { operations: [{ table: "told", ...operation }] },
  });
  const ways = (id: string): Record<string, Step[]> => ({
    batch: [
      { path: `${P}/batch`, body: { inserts: [{ id, n: 1 }] } },
      { path: `${P}/batch`, body: { updates: [{ id, data: { n: 2 } }] } },
      { path: `${P}/batch`, body: { deletes: [id] } },
    ],
    byFilter: [
      { path: P, body: { id, n: 1 } },
      { path: `${P}/batch-by-filter`, body: { action: "update", filter: [["id", "==", id]], data: { n: 2 } } },
      { path: `${P}/batch-by-filter`, body: { action: "delete", filter: [["id", "==", id]] } },
    ],
    upsert: [
      { path: `${P}?upsert=true`, body: { id, n: 1 } },
      { path: `${P}?upsert=true`, body: { id, n: 2 } },
      transaction({ action: "delete", id }),
    ],
    transaction: [
      transaction({ action: "insert", data: { id, n: 1 } }),
      transaction({ action: "update", id, data: { n: 2 } }),
      transaction({ action: "delete", id }),
    ],
  });
  const expected: JsonObject[] = [];
  for (const { name, client, by } of callers) {
    for (const way of Object.keys(ways(""))) {
      const of = `${name}-${way}`;
      for (const step of ways(of)[way] ?? []) {
        const { status, body } = await client.post(step.path, step.body);
        expect([of, step, status < 300 ? "written" : body]).toEqual([of, step, "written"]);
      }
      expected.push({ what: "insert", by, of, n: 1 }, { what: "update", by, of, n: [1, 2] });
      expected.push({ what: "delete", by, of, n: 2 });
    }
  }
  const heard = async () =>
    (await platform.service.get<{ items: JsonObject[] }>(path("heard"), { query: { limit: 1000 } })).body.items;
  await until("every hook has run", async () => (await heard()).length >= expected.length);
  const facts = (await heard()).map(({ what, by, of, n }) => ({ what, by, of, n }));
  const sorted = (list: unknown[]) => list.map((one) => JSON.stringify(one)).sort();
  expect(sorted(facts)).toEqual(sorted(expected));
});
