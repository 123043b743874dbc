import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { upload } from "../storage/storage-support.ts";

interface Run extends JsonObject {
  event: string;
  before: JsonObject | null;
  after: JsonObject | null;
  by: JsonObject | null;
  instanceId: string | null;
  at: string;
  trigger: string;
}

/** Each run is written to a table of its own, which no trigger watches. */
const CONFIG = `
  import { defineConfig, Refusal } from "platform";
  const open = { read: true, insert: true, update: true, delete: true };
  const note = (trigger) => async ({ app, event, before, after, by, instanceId, at, id, attempt }) => {
    await app.db("log").table("runs").insert({ trigger, event, before, after, by, instanceId, at, run: id, attempt });
  };
  const tables = {
    authors: { schema: { name: { type: "string" } }, access: open },
    books: { schema: {
      title: { type: "string", required: true }, status: { type: "string" }, pages: { type: "integer" },
      author: { type: "string", references: { table: "authors", onDelete: "cascade" } },
      editor: { type: "string", references: { table: "authors", onDelete: "set null" } },
    }, access: open, hooks: { beforeInsert: (_auth, record) => { if (record.title === "refused") throw new Refusal("No") } } },
    quiet: { schema: { title: { type: "string" } }, access: open },
  };
  export default defineConfig({
    auth: { anonymous: true, hooks: {
      afterSignup: async (user, app) => { await app.db("log").table("runs").insert({ trigger: "afterSignup", after: user, before: null }) },
      afterDelete: async (user, app) => { await app.db("log").table("runs").insert({ trigger: "afterDelete", after: null, before: user }) },
    } },
    storage: { buckets: {
      pictures: { access: { read: true, write: (auth) => auth !== null, delete: (auth) => auth !== null } },
      quiet: { access: { read: true, write: true, delete: true } },
    } },
    databases: {
      log: { tables: { runs: {} } },
      shared: { tables },
      spaces: { instance: true, access: { create: true, open: true }, tables: { books: tables.quiet } },
    },
    triggers: {
      all: { on: { table: "shared.books" }, run: note("all") },
      paid: { on: { table: "shared.books", events: ["insert", "update"] }, filter: [["status", "==", "paid"]], run: note("paid") },
      gone: { on: { table: "shared.books", events: ["delete"] }, filter: [["status", "==", "paid"]], run: note("gone") },
      space: { on: { table: "spaces.books" }, run: note("space") },
      pictures: { on: { bucket: "pictures" }, run: note("pictures") },
      large: { on: { bucket: "pictures", events: ["upload"] }, filter: [["size", ">", 5]], run: note("large") },
      accounts: { on: { auth: ["signup", "delete"] }, run: note("accounts") },
      admins: { on: { auth: ["signup"] }, filter: [["role", "==", "admin"]], run: note("admins") },
    },
  });`;

let platform: TestPlatform;
const BOOKS = "/api/db/shared/tables/books";

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

async function runs(trigger: string, about: (run: Run) => boolean): Promise<Run[]> {
  const filter = encodeURIComponent(JSON.stringify([["trigger", "==", trigger]]));
  const { body } = await platform.service.get<{ items: Run[] }>(
    `/api/db/log/tables/runs?limit=1000&sort=createdAt&filter=${filter}`,
  );
  return body.items.filter(about);
}

/** The runs of a trigger about a record, once there are so many. */
async function runsAbout(trigger: string, id: string, count: number): Promise<Run[]> {
  const about = ({ before, after }: Run) => (after ?? before)?.["id"] === id;
  await until(`${trigger} has run ${count} times for ${id}`, async () => (await runs(trigger, about)).length >= count);
  return runs(trigger, about);
}

const events = (list: readonly Run[]) => list.map(({ event }) => event);

test("[TG1] [TG2] insert, update, upsert and delete of a record set off a run each, with before and after as stored", async () => {
  const inserted = await platform.post(BOOKS, { id: "one", title: "One" });
  await platform.patch(`${BOOKS}/one`, { pages: 3 });
  await platform.post(`${BOOKS}?upsert=true`, { id: "one", title: "Two" });
  await platform.delete(`${BOOKS}/one`);
  const list = await runsAbout("all", "one", 4);
  expect(events(list)).toEqual(["insert", "update", "update", "delete"]);
  expect(list[0]).toMatchObject({ before: null, after: inserted.body as JsonObject, instanceId: null, attempt: 1 });
  expect(list[1]).toMatchObject({ before: { title: "One", pages: null }, after: { title: "One", pages: 3 } });
  expect(list[3]).toMatchObject({ before: { title: "Two", pages: 3 }, after: null });
  expect(new Set(list.map((run) => run["run"])).size).toBe(4);
  expect(Number.isNaN(Date.parse(list[0]?.at ?? ""))).toBe(false);
});

test("[TG1] batches, requests by filter, transactions and the events of cascades set off runs too", async () => {
  await platform.post("/api/db/shared/tables/authors", { id: "ann", name: "Ann" });
  await platform.post(`${BOOKS}/batch`, {
    inserts: [
      { id: "b1", title: "B1", author: "ann" },
      { id: "b2", title: "B2", editor: "ann" },
    ],
  });
  await platform.post(`${BOOKS}/batch-by-filter`, {
    action: "update",
    filter: [["title", "in", ["B1", "B2"]]],
    data: { pages: 9 },
  });
  await platform.delete("/api/db/shared/tables/authors/ann");
  expect(events(await runsAbout("all", "b1", 3))).toEqual(["insert", "update", "delete"]);
  const edited = await runsAbout("all", "b2", 3);
  expect(events(edited)).toEqual(["insert", "update", "update"]);
  expect(edited[2]).toMatchObject({ before: { editor: "ann" }, after: { editor: null } });
});

test("[TG1] an update that changes nothing sets off nothing", async () => {
  await platform.post(BOOKS, { id: "same", title: "Same" });
  await platform.patch(`${BOOKS}/same`, {});
  await platform.delete(`${BOOKS}/same`);
  expect(events(await runsAbout("all", "same", 2))).toEqual(["insert", "delete"]);
});

test("[TG4] events and filter say which changes count; for deletes the filter is about what was deleted", async () => {
  await platform.post(BOOKS, { id: "f", title: "F", status: "open" });
  await platform.patch(`${BOOKS}/f`, { status: "paid" });
  await platform.patch(`${BOOKS}/f`, { pages: 1 });
  await platform.patch(`${BOOKS}/f`, { status: "open" });
  await platform.patch(`${BOOKS}/f`, { status: "paid" });
  await platform.delete(`${BOOKS}/f`);
  await platform.post(BOOKS, { id: "g", title: "G", status: "open" });
  await platform.delete(`${BOOKS}/g`);
  await runsAbout("all", "f", 6);
  await runsAbout("all", "g", 2);
  expect(events(await runsAbout("paid", "f", 3))).toEqual(["update", "update", "update"]);
  expect(events(await runsAbout("gone", "f", 1))).toEqual(["delete"]);
  expect(await runs("gone", ({ before }) => before?.["id"] === "g")).toEqual([]);
});

test("[TG3] by names the user, the key, the server or nobody; a cascade has the by of what caused it", async () => {
  const user = await signIn(platform);
  const asUser = platform.as(user.token);
  await platform.post(BOOKS, { id: "by", title: "Nobody" });
  await asUser.patch(`${BOOKS}/by`, { title: "User" });
  await platform.service.patch(`${BOOKS}/by`, { title: "Key" });
  const list = await runsAbout("all", "by", 3);
  expect(list.map(({ by }) => by)).toEqual([null, { user: user.id }, { key: "root" }]);

  await asUser.post("/api/db/shared/tables/authors", { id: "bo", name: "Bo" });
  await platform.post(BOOKS, { id: "child", title: "Child", author: "bo" });
  await asUser.delete("/api/db/shared/tables/authors/bo");
  expect((await runsAbout("all", "child", 2))[1]).toMatchObject({ event: "delete", by: { user: user.id } });
});

test("[TG8] what is refused or undone sets off nothing", async () => {
  expect((await platform.post(BOOKS, { id: "r", title: "refused" })).status).toBe(400);
  const batch = {
    inserts: [
      { id: "u1", title: "Fine" },
      { id: "u2", title: "refused" },
    ],
  };
  expect((await platform.post(`${BOOKS}/batch`, batch)).status).toBe(400);
  await platform.post(BOOKS, { id: "after", title: "After" });
  await runsAbout("all", "after", 1);
  expect(await runs("all", ({ after }) => ["r", "u1", "u2"].includes(String(after?.["id"])))).toEqual([]);
});

test("[TG5] a trigger on a dynamic namespace is for all instances, those that the change creates included", async () => {
  const rows = ["x", "y"].map((id) => ({ id, path: `/api/db/spaces/${id}/tables/books` }));
  for (const { path } of rows) await platform.post(path, { id: "same-id", title: "T" });
  const list = await runsAbout("space", "same-id", 2);
  expect(list.map(({ instanceId }) => instanceId).sort()).toEqual(["x", "y"]);
});

test("[TG6] uploads and deletes of a bucket set off runs with the facts of the file", async () => {
  const user = await signIn(platform);
  const asUser = platform.as(user.token);
  for (const text of ["one", "longer text"])
    expect((await upload(asUser, "pictures", "a.txt", text, { type: "text/plain" })).status).toBe(201);
  await upload(asUser, "quiet", "a.txt", "nothing");
  await asUser.delete("/api/storage/pictures/a.txt");
  const about = ({ before, after }: Run) => (after ?? before)?.["key"] === "a.txt";
  await until("the file's runs", async () => (await runs("pictures", about)).length === 3);
  const list = await runs("pictures", about);
  expect(list.map(({ event, before, after, by }) => [event, before?.["size"], after?.["size"], by])).toEqual([
    ["upload", undefined, 3, { user: user.id }],
    ["upload", 3, 11, { user: user.id }],
    ["delete", 11, undefined, { user: user.id }],
  ]);
  expect(list[0]?.after).toMatchObject({ key: "a.txt", contentType: "text/plain;charset=utf-8", uploadedBy: user.id });
  await until("the filtered run", async () => (await runs("large", about)).length === 1);
});

test("[TG7] every account that comes to be or goes sets off a run with the user as administrators see it", async () => {
  const signedUp = await platform.post<{ user: { id: string } }>("/api/auth/signup", {
    email: "new@example.com",
    password: "correct horse battery",
  });
  const anonymous = await platform.post<{ user: { id: string } }>("/api/auth/signin/anonymous");
  const created = await platform.service.post<{ user: { id: string } }>("/api/auth/admin/users", {
    email: "made@example.com",
    password: "correct horse battery",
    role: "admin",
  });
  const imported = await platform.service.post<{ results: { id: string }[] }>("/api/admin/auth/users/import", {
    users: ["i1@example.com", "i2@example.com"].map((email) => ({ email, password: "correct horse battery" })),
  });
  expect(imported).toMatchObject({ status: 200 });
  const [first = "", second = ""] = imported.body.results.map(({ id }) => id);
  const ids = [signedUp.body.user.id, anonymous.body.user.id, created.body.user.id];
  const [own = "", anon = "", made = ""] = ids;
  await platform.service.delete(`/api/auth/admin/users/${made}`);
  for (const [id, by] of [
    [own, { user: own }],
    [anon, { user: anon }],
    [first, { key: "root" }],
    [second, { key: "root" }],
  ] as const) {
    const [run] = await runsAbout("accounts", id, 1);
    expect(run).toMatchObject({ event: "signup", before: null, after: { id, disabled: false }, by });
    expect(JSON.stringify(run)).not.toMatch(/passwordHash|password_hash/);
  }
  const both = await runsAbout("accounts", made, 2);
  expect(both).toMatchObject([
    { event: "signup", after: { role: "admin" } },
    { event: "delete", before: { email: "made@example.com" }, after: null, by: { key: "root" } },
  ]);
  await runsAbout("admins", made, 1);
  expect(await runs("admins", ({ after }) => after?.["id"] === own)).toEqual([]);
});

test("[TG18] auth.hooks.afterSignup and afterDelete run for every account", async () => {
  const { body } = await platform.service.post<{ user: { id: string } }>("/api/auth/admin/users", {
    email: "hooked@example.com",
    password: "correct horse battery",
  });
  await platform.service.delete(`/api/auth/admin/users/${body.user.id}`);
  const [signedUp] = await runsAbout("afterSignup", body.user.id, 1);
  const [deleted] = await runsAbout("afterDelete", body.user.id, 1);
  expect([signedUp?.after?.["email"], deleted?.before?.["email"]]).toEqual([
    "hooked@example.com",
    "hooked@example.com",
  ]);
});
