import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;

const CONFIG = `
  import { Refusal } from "platform";
  const asked = Promise.withResolvers();
  const closed = Promise.withResolvers();
  const all = { read: true, insert: true, update: true, delete: true };
  export default { databases: { shared: { tables: {
    flags: {
      schema: { on: { type: "boolean" } },
      access: all,
      hooks: {
        beforeUpdate: (auth, record) => (record.id === "gate" ? asked.promise.then(() => undefined) : undefined),
        afterUpdate: (_auth, record) => { if (record.id === "gate") closed.resolve(); },
      },
    },
    guarded: {
      schema: { n: { type: "integer" } },
      access: {
        read: true,
        insert: async (auth, record, { table }) => {
          await undefined;
          return record.n === 1 || (table("guarded").get("first") !== null && table("guarded").get("second") === null);
        },
        update: async (auth, record, next, { table }) => {
          const isOpen = table("flags").get("gate")?.on === true;
          if (isOpen) {
            asked.resolve();
            await closed.promise;
          }
          return isOpen;
        },
      },
    },
    hooked: {
      schema: { position: { type: "integer" }, seen: { type: "string" } },
      access: all,
      hooks: {
        beforeInsert: (auth, record, context) => {
          const { namespace, instanceId, broadcast, table } = context;
          return { ...record, seen: [namespace, instanceId, typeof broadcast, table("hooked").get("a")?.position].join(" ") };
        },
        beforeDelete: async (auth, record, { table, db }) => {
          await db("shared").table("flags").count();
          if (table("flags").get("locked") !== null) throw new Refusal("locked");
        },
        afterInsert: async (_auth, record, { table, db }) => {
          await db("shared").table("log").insert({ text: record.id + " " + (table("hooked").get(record.id) !== null) });
        },
      },
    },
    log: { schema: { text: { type: "string" } }, access: { read: true } },
    broken: {
      access: { read: true, insert: true },
      hooks: { beforeInsert: (auth, record, { table }) => { table("flags").first([["on", "==", true]]); } },
    },
  } } } };`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

test("[TB206] an asynchronous rule is asked again if its lookups have changed meanwhile", async () => {
  await ann.post(path("flags"), { id: "gate", on: true });
  await ann.post(path("guarded"), { id: "g", n: 1 });
  const [guarded, gate] = await Promise.all([
    ann.patch(`${path("guarded")}/g`, { n: 2 }),
    ann.patch(`${path("flags")}/gate`, { on: false }),
  ]);
  expect([guarded.status, gate.status]).toEqual([403, 200]);
  expect((await ann.get(`${path("guarded")}/g`)).body["n"]).toBe(1);
});

test("[TB206] what an asynchronous rule looks up after a wait is of its place in the batch", async () => {
  const batch = (...inserts: { id: string; n: number }[]) => ann.post(`${path("guarded")}/batch`, { inserts });
  expect((await batch({ id: "too early", n: 2 }, { id: "first", n: 1 })).status).toBe(403);
  expect(
    (await batch({ id: "first", n: 1 }, { id: "then", n: 2 }, { id: "second", n: 2 }, { id: "late", n: 2 })).status,
  ).toBe(403);
  expect((await batch({ id: "first", n: 1 }, { id: "then", n: 2 }, { id: "second", n: 2 })).status).toBe(200);
});

test("[TB210] hooks look up in their transaction, and after their write what is committed", async () => {
  const inserts = [{ id: "a", position: 7 }, { id: "b" }];
  expect((await ann.post(`${path("hooked")}/batch`, { inserts })).status).toBe(200);
  const seen = (await ann.get<ListAnswer>(path("hooked"))).body.items.map((item) => item["seen"]);
  expect(seen).toEqual(["shared  function ", "shared  function 7"]);
  const texts = async () => (await ann.get<ListAnswer>(path("log"))).body.items.map(({ text }) => text).sort();
  await until("both hooks have run", async () => (await texts()).length === 2);
  expect(await texts()).toEqual(["a true", "b true"]);
  expect((await ann.delete(`${path("hooked")}/a`)).status).toBe(200);
  await ann.post(path("flags"), { id: "locked" });
  const refused = await ann.delete(`${path("hooked")}/b`);
  expect([refused.status, refused.body["message"]]).toEqual([400, "locked"]);
});

test("[TB202] [TB210] a hook's lookup without an index is a 500 without details", async () => {
  const answer = await ann.post(path("broken"), {});
  expect([answer.status, JSON.stringify(answer.body).includes("index")]).toEqual([500, false]);
  await until("the log says so", () => platform.stderr().includes('declare indexes: [{ fields: [\\"on\\"] }]'));
});
