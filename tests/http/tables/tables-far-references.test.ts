import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform, until } from "../../support/index.ts";

const CONFIG = `
  import { defineConfig } from "platform";
  const access = { read: true, insert: true, update: true, delete: true };
  const isShown = () => [["isHidden", "==", false]];
  export default defineConfig({
    api: { schemaEndpoint: true },
    databases: {
      shared: {
        tables: {
          people: {
            schema: { name: { type: "string" }, isHidden: { type: "boolean", default: false }, homeId: { references: "homes" } },
            access: { ...access, read: isShown },
          },
          homes: { schema: { city: { type: "string" } }, access },
          tags: { schema: { name: { type: "string" } }, access },
          closed: { schema: { name: { type: "string" } }, access: { insert: true } },
        },
      },
      journal: {
        tables: {
          entries: { schema: { personId: { references: "shared/people", onDelete: "setNull" }, text: { type: "string" } }, access },
        },
      },
      boards: {
        instance: true,
        access: { create: true, open: true },
        tables: {
          tasks: {
            schema: {
              title: { type: "string" },
              ownerId: { references: "shared/people", onDelete: "setNull" },
              hostId: { references: "shared/people", onDelete: "cascade" },
              guestId: { references: "shared/people", onDelete: "setNull", mayBeHidden: true },
              closedId: { references: "shared/closed", onDelete: "setNull" },
              tags: { type: "references", references: "shared/tags", onDelete: "remove" },
              touched: { type: "datetime", onUpdate: "now" },
            },
            access,
          },
          notes: { schema: { taskId: { references: "tasks", onDelete: "cascade" } }, access },
        },
      },
    },
    routes: (api) => api
      .get("/expanded/:id", ({ app, params }) =>
        app.db("boards", "expanded").table("tasks").expand("ownerId.homeId").where([["id", "==", params.id]]).first())
      .get("/transacted", ({ app }) =>
        app.as({ id: "u1" }).db("boards", "expanded").transaction((tx) => tx.table("tasks").expand("ownerId.homeId").list().items)),
  });`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const shared = (table: string) => `/api/db/shared/tables/${table}`;
const tasks = (board: string) => `/api/db/boards/${board}/tables/tasks`;

const insert = async (path: string, body: JsonObject) => {
  const answer = await platform.post<JsonObject>(path, body);
  expect([body, answer.status, answer.body]).toEqual([body, 201, expect.anything()]);
  return answer.body;
};
const get = async (path: string) => (await platform.get<JsonObject>(path)).body;
const remove = async (table: string, id: string) =>
  expect((await platform.delete(`${shared(table)}/${id}`)).status).toBe(200);

const refusal = (table: string, field: string, text: string) => ({
  status: 400,
  body: { data: { [field]: { code: "unknown_reference", message: expect.stringContaining(text) } } },
  table,
});

test("[TB910] a reference to a record of another file is stored if the record exists and is shown", async () => {
  await insert(shared("people"), { id: "ann" });
  await insert(shared("people"), { id: "hid", isHidden: true });
  await insert(shared("closed"), { id: "c1" });
  for (const board of ["first", "first", "second"]) {
    expect(await insert(tasks(board), { ownerId: "ann" })).toMatchObject({ ownerId: "ann", guestId: null, tags: [] });
  }
  // As in one file: a table of which nothing may be read takes references.
  await insert(tasks("first"), { closedId: "c1" });
  const missing = await platform.post<ErrorAnswer>(tasks("first"), { ownerId: "nobody" });
  const hidden = await platform.post<ErrorAnswer>(tasks("first"), { ownerId: "hid" });
  for (const [answer, id] of [
    [missing, "nobody"],
    [hidden, "hid"],
  ] as const) {
    const { status, body } = refusal("people", "ownerId", `no record of people with id "${id}" that you may read`);
    expect(answer).toMatchObject({ status, body });
  }
  expect(hidden.body.message.replaceAll("hid", "nobody")).toBe(missing.body.message);
  expect((await platform.post(tasks("third"), { ownerId: "nobody" })).status).toBe(400);
  expect((await platform.get(tasks("third"))).body).toMatchObject({ items: [], total: 0 });
});

test("[TB910] mayBeHidden, service keys and every kind of write are as with a table of the file", async () => {
  const task = await insert(tasks("kinds"), { guestId: "hid" });
  const refused = await platform.post<ErrorAnswer>(tasks("kinds"), { guestId: "nobody" });
  expect(refused.body.data?.["guestId"]?.message).toEqual(expect.not.stringContaining("may read"));
  const at = `${tasks("kinds")}/${String(task["id"])}`;
  expect((await platform.patch(at, { ownerId: "ann" })).body).toMatchObject({ ownerId: "ann" });
  expect((await platform.patch(at, { ownerId: "hid" })).status).toBe(400);
  expect((await platform.patch(at, { title: "stays", ownerId: "ann" })).status).toBe(200);
  expect((await platform.service.patch(at, { ownerId: "hid" })).body).toMatchObject({ ownerId: "hid" });
  const batch = { inserts: [{ ownerId: "ann" }, { ownerId: "nobody" }] };
  const failed = await platform.post<ErrorAnswer>(`${tasks("kinds")}/batch`, batch);
  expect([failed.status, Object.keys(failed.body.data ?? {})]).toEqual([400, ["inserts.1.ownerId"]]);
  const operations = [{ action: "upsert", table: "tasks", data: { id: String(task["id"]), ownerId: "nobody" } }];
  const undone = await platform.post<ErrorAnswer>("/api/db/boards/kinds/transaction", { operations });
  expect([undone.status, Object.keys(undone.body.data ?? {})]).toEqual([400, ["operations.0.data.ownerId"]]);
});

test("[TB910] several references to another file are checked, indexed and filtered", async () => {
  for (const id of ["red", "green"]) await insert(shared("tags"), { id });
  const task = await insert(tasks("tagged"), { id: "t1", tags: ["green", "red"] });
  expect(task["tags"]).toEqual(["green", "red"]);
  expect((await platform.post(tasks("tagged"), { tags: ["red", "nothing"] })).status).toBe(400);
  const filter = encodeURIComponent(JSON.stringify([["tags", "hasAll", ["red", "green"]]]));
  expect(await get(`${tasks("tagged")}?filter=${filter}`)).toMatchObject({ total: 1 });
  const added = { tags: { $op: "add", value: "nothing" } };
  expect((await platform.patch(`${tasks("tagged")}/t1`, added)).status).toBe(400);
});

test("[TB912] expand gives records of another file under its rules, and goes on along their references", async () => {
  await insert(shared("homes"), { id: "h1", city: "Graz" });
  await insert(shared("people"), { id: "eve", name: "Eve", homeId: "h1" });
  await insert(tasks("expanded"), { id: "t1", ownerId: "eve", guestId: "hid", closedId: "c1", tags: ["red"] });
  const paths = "expand=ownerId.homeId,guestId,closedId,tags,hostId";
  const expanded = {
    ownerId: { id: "eve", name: "Eve", expand: { homeId: { id: "h1", city: "Graz" } } },
    guestId: null,
    closedId: null,
    hostId: null,
    tags: [{ id: "red" }],
  };
  expect(await get(`${tasks("expanded")}/t1?${paths}`)).toMatchObject({ expand: expanded });
  expect(await get(`${tasks("expanded")}?${paths}`)).toMatchObject({ items: [{ expand: expanded }] });
  const back = await get(`${tasks("expanded")}/t1?expand=ownerId.people(homeId)`);
  expect(back).toMatchObject({ code: 400 });
  const own = { ownerId: { expand: { homeId: { expand: { "people(homeId)": { items: [{ id: "eve" }] } } } } } };
  expect(await get(`${tasks("expanded")}/t1?expand=ownerId.homeId.people(homeId)`)).toMatchObject({ expand: own });
  const task = { expand: { ownerId: { id: "eve", expand: { homeId: { city: "Graz" } } } } };
  expect((await platform.service.get("/api/functions/expanded/t1")).body).toMatchObject(task);
  expect((await platform.service.get("/api/functions/transacted")).body).toMatchObject([task]);
});

/** Waits until the task has these values. */
const becomes = (board: string, id: string, values: JsonObject) =>
  until(`${id} of ${board} has the values`, async () => {
    const body = await get(`${tasks(board)}/${id}`);
    return Object.entries(values).every(([name, value]) => Bun.deepEquals(body[name], value));
  });

test("[TB913] a deletion is carried out in open instances and other namespaces: setNull, cascade, remove", async () => {
  await insert(shared("people"), { id: "gone" });
  await insert(shared("tags"), { id: "old" });
  await insert(tasks("open"), { id: "t1", ownerId: "gone", hostId: "ann", tags: ["old", "red"] });
  await insert(tasks("open"), { id: "t2", hostId: "gone", ownerId: "gone" });
  await insert("/api/db/boards/open/tables/notes", { taskId: "t2" });
  const entry = await insert("/api/db/journal/tables/entries", { personId: "gone" });
  const before = await get(`${tasks("open")}/t1`);
  await remove("people", "gone");
  await remove("tags", "old");
  await becomes("open", "t1", { ownerId: null, hostId: "ann", tags: ["red"] });
  await until("the cascade is there", async () => (await platform.get(`${tasks("open")}/t2`)).status === 404);
  expect(await get("/api/db/boards/open/tables/notes")).toMatchObject({ total: 0 });
  await until(
    "the entry has no person",
    async () => (await get(`/api/db/journal/tables/entries/${String(entry["id"])}`))["personId"] === null,
  );
  const after = await get(`${tasks("open")}/t1`);
  expect(String(after["touched"]) > String(before["updatedAt"])).toBe(true);
  expect(String(after["updatedAt"]) > String(before["updatedAt"])).toBe(true);
});

test("[TB914] an instance that is not open carries deletions out before it answers anything, also after a kill", async () => {
  await insert(shared("people"), { id: "late" });
  const inserts = Array.from({ length: 300 }, (_, n) => ({ id: `t${n}`, ownerId: "late" }));
  expect((await platform.post(`${tasks("late")}/batch`, { inserts })).status).toBe(200);
  await insert(tasks("later"), { id: "t1", ownerId: "late" });
  await platform.restart();
  await remove("people", "late");
  const filter = encodeURIComponent(JSON.stringify([["ownerId", "!=", null]]));
  const [list, count] = await Promise.all([
    get(`${tasks("late")}?filter=${filter}`),
    get(`${tasks("late")}/count?filter=${filter}`),
  ]);
  expect([list["total"], count["total"]]).toEqual([0, 0]);
  await platform.kill();
  await platform.restart();
  expect(await get(`${tasks("later")}/t1`)).toMatchObject({ ownerId: null });
}, 30_000);

test("[TB911] who refers to a record that was created again keeps the reference", async () => {
  await insert(shared("people"), { id: "twice" });
  await insert(tasks("twice"), { id: "old", ownerId: "twice" });
  for (let round = 0; round < 20; round++) {
    await remove("people", "twice");
    await insert(shared("people"), { id: "twice" });
    await insert(tasks("twice"), { id: `new${round}`, ownerId: "twice" });
    const items = ((await get(tasks("twice")))["items"] ?? []) as JsonObject[];
    const kept = items.filter(({ ownerId }) => ownerId !== null).map(({ id }) => id);
    expect(kept).toEqual([`new${round}`]);
  }
});

test("[TB918] the schema endpoint and OpenAPI describe a reference to another file", async () => {
  const reference = { namespace: "shared", table: "people", column: "id", onDelete: "set null" };
  const tags = { type: "references", references: { namespace: "shared", table: "tags", onDelete: "remove" } };
  expect(await get("/api/schema")).toMatchObject({
    namespaces: { boards: { tables: { tasks: { fields: { ownerId: { references: reference }, tags } } } } },
  });
  const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const expand = {
    properties: {
      ownerId: { anyOf: [refTo("shared.people"), { type: "null" }] },
      tags: { type: "array", items: refTo("shared.tags") },
    },
  };
  expect(await get("/swagger/json")).toMatchObject({
    components: { schemas: { "boards.tasks": { properties: { expand } } } },
  });
});
