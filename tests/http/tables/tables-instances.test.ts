import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (instance: string, namespace = "clubs") => `/api/db/${namespace}/${instance}/tables/members`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
    import { Refusal } from "platform";
    const [asked, opened] = [Promise.withResolvers(), Promise.withResolvers()];
    export default { databases: {
      clubs: { instance: true,
        access: { create: (auth, id) => auth !== null && id.startsWith("club"), open: async (auth, id) => auth !== null && id !== "club-closed" },
        tables: { members: { schema: { name: { type: "string" } }, access: { read: true, insert: true, update: true, delete: true } } } },
      picky: { instance: true, access: { create: true, open: true }, tables: { members: {
        schema: { name: { type: "string", required: true, unique: true } },
        access: { read: true, insert: async (_auth, record) => record.name !== "denied", update: true, delete: true },
        hooks: { beforeInsert: (_auth, record) => { if (record.name === "hooked") throw new Refusal("no") } } } } },
      taken: { instance: true,
        access: {
          create: (auth, id, { db }) => {
            // The start tries the rules with values of its own.
            if (id !== "mine") return true;
            if (db("late").table("comers").get(auth.id) === null) return asked.promise.then(() => true);
            asked.resolve();
            return opened.promise.then(() => true);
          },
          open: (auth, id, { table }) => {
            const isMember = table("members").get(auth.id) !== null;
            if (id === "mine" && isMember) opened.resolve();
            return isMember;
          },
        },
        tables: { members: { access: { read: true, insert: true } } } },
      late: { tables: { comers: {} } },
      sealed: { instance: true, tables: { members: { access: { read: true, insert: true } } } },
    } }`,
  });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

const directory = () => join(platform.dataDirectory, "databases", "clubs");

test("[TB474] a path without the instance id, or with one too many, says what the path is", async () => {
  for (const rest of ["tables/members", "tables/members/count"]) {
    expect((await ann.get(`/api/db/clubs/${rest}`)).body).toEqual({
      code: 404,
      message: 'The namespace "clubs" has instances, and none is named: its paths begin with /api/db/clubs/INSTANCE',
    });
  }
  expect((await ann.get("/api/db/late/club-1/tables/comers")).body).toEqual({
    code: 404,
    message: 'The namespace "late" has no instances, got "club-1": its paths begin with /api/db/late/tables',
  });
});

test("[TB59] the first write of an instance creates its file", async () => {
  expect((await ann.get<ListAnswer>(path("club-none"))).body).toMatchObject({ items: [], total: 0 });
  expect((await ann.get(`${path("club-none")}/x`)).status).toBe(404);
  expect((await ann.patch(`${path("club-none")}/x`, { name: "x" })).status).toBe(404);
  expect((await ann.delete(`${path("club-none")}/x`)).status).toBe(404);
  expect((await ann.get(`${path("club-none")}/count`)).body).toEqual({ total: 0 });
  expect(existsSync(join(directory(), "club-none.db"))).toBe(false);
  expect((await ann.post(path("club-1"), { id: "m", name: "One" })).status).toBe(201);
  expect((await ann.post(path("club-2"), { id: "m", name: "Two" })).status).toBe(201);
  expect((await ann.get(`${path("club-1")}/m`)).body["name"]).toBe("One");
  expect((await ann.get(`${path("club-2")}/m`)).body["name"]).toBe("Two");
  expect(existsSync(join(directory(), "club-1.db"))).toBe(true);
  expect((await platform.service.get("/api/db/clubs/tables/members")).status).toBe(404);
});

test("[TB70] a write that is refused or changes nothing creates no file", async () => {
  const P = path("one", "picky");
  const tried: [string, JsonObject, number][] = [
    [P, { name: 1 }, 400],
    [P, {}, 400],
    [P, { name: "denied" }, 403],
    [P, { name: "hooked" }, 400],
    [`${P}?upsert=true`, { id: "a", name: 5 }, 400],
    [`${P}/batch`, { inserts: [{ name: "a" }, { name: "a" }] }, 409],
    [`${P}/batch`, { updates: [{ id: "a", data: { name: "b" } }] }, 404],
    [`${P}/batch`, { deletes: ["a"] }, 404],
    [`${P}/batch`, {}, 200],
    [`${P}/batch-by-filter`, { action: "delete", filter: [["name", "==", "a"]] }, 200],
  ];
  for (const [at, body, status] of tried)
    expect([at, body, (await ann.post(at, body)).status]).toEqual([at, body, status]);
  expect(existsSync(join(platform.dataDirectory, "databases", "picky"))).toBe(false);
  const both = await Promise.all([ann.post(P, { id: "a", name: "a" }), ann.post(P, { id: "a", name: "b" })]);
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  expect(readdirSync(join(platform.dataDirectory, "databases", "picky"))).toContain("one.db");
});

test("[TB60] create and open rules decide about instances", async () => {
  expect((await ann.post(path("other"), { name: "x" })).status).toBe(403);
  expect((await platform.post(path("club-1"), { name: "x" })).status).toBe(401);
  expect((await platform.get(path("club-1"))).status).toBe(401);
  expect((await platform.service.post(path("club-closed"), { id: "m", name: "x" })).status).toBe(201);
  expect((await ann.get(`${path("club-closed")}/m`)).status).toBe(403);
  expect((await ann.post(path("club-closed"), { name: "x" })).status).toBe(403);
  expect((await ann.get(path("a", "sealed"))).status).toBe(403);
  expect((await platform.get(path("a", "sealed"))).status).toBe(401);
  expect((await platform.service.post(path("a", "sealed"), { any: 1 })).status).toBe(201);
});

test("[TB60] who may create an instance may not write into one that somebody else has created meanwhile", async () => {
  const late = await signIn(platform);
  expect((await platform.service.post("/api/db/late/tables/comers", { id: late.id })).status).toBe(201);
  const P = path("mine", "taken");
  // Allowed to create it, it waits until the instance has an owner.
  const writing = late.post(P, { id: "x" });
  expect((await ann.post(P, { id: ann.id })).status).toBe(201);
  expect((await ann.get<ListAnswer>(P)).body.total).toBe(1);
  expect((await writing).status).toBe(403);
  expect((await ann.get<ListAnswer>(P)).body.total).toBe(1);
});

test("[TB61] ids with paths are refused", async () => {
  const bad = [
    "..",
    ".",
    "..%2Fescape",
    "%2e%2e%2fescape",
    "a%2Fb",
    "a%5Cb",
    "a%00b",
    "a b",
    "ä",
    "x".repeat(129),
    "a.db",
    "%2Ftmp%2Fx",
    "-%0a",
  ];
  for (const id of bad) {
    const answer = await platform.service.fetch(path(id), {
      method: "POST",
      body: '{"name":"x"}',
      headers: { "content-type": "application/json" },
    });
    // A path that normalises to another route does not exist.
    expect([id, [400, 404, 405].includes(answer.status)]).toEqual([id, true]);
  }
  expect((await platform.service.post(path("a.b"), { name: "x" })).status).toBe(400);
  expect((await platform.service.post(path("tables"), { name: "x" })).status).toBe(400);
  expect((await platform.service.post(path("A-z_0".repeat(25)), { name: "x" })).status).toBe(201);
  const files = readdirSync(platform.dataDirectory, { recursive: true })
    .map(String)
    .filter((name) => name.includes("escape"));
  expect(files).toEqual([]);
});

test("[TB62] thousands of instances need few open files", async () => {
  const count = 1_000;
  for (let start = 0; start < count; start += 50) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        ann.post(path(`club-m${start + index}`), { id: "m", name: `n${start + index}` }),
      ),
    );
    expect(answers.every(({ status }) => status === 201)).toBe(true);
  }
  for (const index of [0, 1, 500, 999])
    expect((await ann.get(`${path(`club-m${index}`)}/m`)).body["name"]).toBe(`n${index}`);
  const open = readdirSync(`/proc/${platform.process.pid}/fd`).length;
  expect(open).toBeLessThan(2_000);
});
