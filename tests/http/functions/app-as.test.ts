import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { openSocket, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// Random rules are in rules-equivalence*.test.ts, which try app.as as one more way.

const CONFIG = `
import { defineConfig } from "platform";

const own = (auth, record) => auth !== null && record.owner === auth.id;

/** Calls what the steps name, one after another: [area, name, method, ...args]. */
const perform = async (user, steps) => {
  const results = [];
  for (const [area, name, method, ...args] of steps) {
    try {
      if (area === "broadcast") results.push((await user.broadcast(name, method, ...args)) ?? "sent");
      else if (area === "transaction") results.push(await user.db("shared").transaction((tx) => tx.table(name)[method](...args) ?? null));
      else {
        const target = area === "db" ? user.db("shared").table(name) : user.storage(name);
        const given = await target[method](...args.map((arg) => arg?.bytes === undefined ? arg : new TextEncoder().encode(arg.bytes)));
        results.push(given instanceof Blob ? { text: await given.text() } : given ?? null);
      }
    } catch (error) {
      results.push({ status: error.status ?? error.name, message: error.message });
    }
  }
  return results;
};

export default defineConfig({
  databases: { shared: { tables: {
    notes: {
      schema: { owner: { type: "string" }, title: { type: "string", max: 20 }, by: { type: "string" } },
      access: { read: (auth) => auth !== null && [["owner", "==", auth.id]], insert: own, update: own, delete: own },
      hooks: { beforeInsert: (auth, record) => ({ ...record, by: auth?.id ?? "nobody" }) },
    },
    members: { access: {} },
    probes: {
      schema: { steps: { type: "json" }, results: { type: "json" }, as: { type: "string" } },
      access: { read: true, insert: true },
      hooks: { beforeInsert: async (auth, record, app) => ({ ...record, results: await perform(app.as(auth), record.steps) }) },
    },
  } } },
  storage: { buckets: { photos: { maxFileSize: 100, access: {
    read: (auth, file) => file.uploadedBy === auth?.id, write: (auth) => auth !== null, delete: (auth, file) => file.uploadedBy === auth?.id } } } },
  realtime: { access: { broadcast: (auth, channel) => channel === "broadcast:" + auth.id } },
  routes: (api) => api
    .post("/steps", async ({ auth, app, body }) => perform(app.as(auth), body), { access: true })
    .post("/raw", ({ auth, app, body }) => app.as(auth).db("shared").table("notes").insert(body), { access: true })
    .get("/members", ({ app }) => Object.keys(app.as(null)), { access: true })
    .get("/wrong/:kind", ({ app, params }) => {
      const values = { undefined: undefined, text: "ann", empty: {}, zero: 0 };
      try { app.as(values[params.kind]); return "let in"; } catch (error) { return error.name; }
    }, { access: true })
    .get("/mine", (context) => context.app.as(context.auth).db("shared").table("notes").list(), {
      access: (auth, { db }) => auth !== null && db("shared").table("members").get(auth.id) !== null,
    })
    .get("/table", () => "x", { access: (auth, { table }) => table("members").get("x") === null }),
});`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  bob = await signIn(platform);
});
afterAll(() => platform.stop());

type Step = JsonValue[];
const perform = async (caller: Pick<TestPlatform, "post">, ...steps: Step[]): Promise<unknown[]> =>
  (await caller.post<unknown[]>("/api/functions/steps", steps)).body;

const denied = { status: 403, message: "Access denied" };
const signedOut = { status: 401, message: "Authentication required" };

test("[FN20] [FN21] tables by the rules of the user", async () => {
  const note = { id: "a1", owner: ann.id, title: "mine" };
  const [made] = await perform(ann, ["db", "notes", "insert", note]);
  expect(made).toMatchObject({ ...note, by: ann.id });
  const [got, listed, counted] = await perform(
    ann,
    ["db", "notes", "get", "a1"],
    ["db", "notes", "list"],
    ["db", "notes", "count"],
  );
  expect([got, listed, counted]).toMatchObject([note, { items: [note], total: 1 }, 1]);
  expect(
    await perform(
      bob,
      ["db", "notes", "get", "a1"],
      ["db", "notes", "get", "missing"],
      ["db", "notes", "list"],
      ["db", "notes", "insert", note],
      ["db", "notes", "update", "a1", { title: "taken" }],
      ["db", "notes", "delete", "a1"],
      ["db", "notes", "batch", { deletes: ["a1"] }],
      ["db", "members", "list"],
      ["db", "nowhere", "list"],
    ),
  ).toMatchObject([
    null,
    null,
    { items: [], total: 0 },
    denied,
    { status: 404 },
    { status: 404 },
    { status: 404 },
    denied,
    { status: 404 },
  ]);
  expect(await perform(platform, ["db", "notes", "list"], ["db", "notes", "insert", { owner: "x" }])).toEqual([
    signedOut,
    signedOut,
  ]);
});

test("[FN20] a transaction has the rights of the user at each operation", async () => {
  const note = { id: "t1", owner: ann.id, title: "in a transaction" };
  expect(await perform(ann, ["transaction", "notes", "insert", note])).toMatchObject([note]);
  expect(
    await perform(
      bob,
      ["transaction", "notes", "get", "t1"],
      ["transaction", "notes", "list", []],
      ["transaction", "notes", "update", "t1", { title: "x" }],
      ["transaction", "notes", "delete", "t1"],
      ["transaction", "notes", "insert", { owner: ann.id }],
      ["transaction", "members", "list", []],
    ),
  ).toMatchObject([null, [], { status: 404 }, { status: 404 }, denied, denied]);
});

test("[FN21] validation and refusals are those of HTTP, and the answer of a route that throws them on", async () => {
  const body = { owner: ann.id, title: "a title that is far too long" };
  const overHttp = await ann.post("/api/db/shared/tables/notes", body);
  const byRoute = await ann.post("/api/functions/raw", body);
  expect([byRoute.status, byRoute.body]).toEqual([400, overHttp.body]);
  expect(await bob.post("/api/functions/raw", { owner: ann.id })).toMatchObject({ status: 403, body: { code: 403 } });
  expect((await platform.post("/api/functions/raw", {})).status).toBe(401);
});

test("[FN20] [FN22] files by the rules of the user, to whom a new one belongs", async () => {
  const [put] = await perform(ann, ["storage", "photos", "put", "a.txt", { bytes: "hello" }]);
  expect(put).toMatchObject({ key: "a.txt", size: 5 });
  const [got, listed] = await perform(ann, ["storage", "photos", "get", "a.txt"], ["storage", "photos", "list"]);
  expect([got, listed]).toMatchObject([{ text: "hello" }, { objects: [{ key: "a.txt" }] }]);
  expect(
    await perform(
      bob,
      ["storage", "photos", "get", "a.txt"],
      ["storage", "photos", "head", "missing.txt"],
      ["storage", "photos", "list"],
      ["storage", "photos", "delete", "a.txt"],
      ["storage", "photos", "put", "b.txt", { bytes: "x".repeat(101) }],
    ),
  ).toMatchObject([denied, null, { objects: [] }, denied, { status: 413 }]);
  expect(await perform(platform, ["storage", "photos", "put", "c.txt", { bytes: "x" }])).toEqual([signedOut]);
});

test("[FN20] broadcasts by their rule", async () => {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: ann.token });
  await socket.nextOf("auth_success");
  const channel = `broadcast:${ann.id}`;
  socket.send({ type: "subscribe", channel });
  await socket.nextOf("subscribed");
  expect(await perform(bob, ["broadcast", channel, "hi", { n: 1 }])).toEqual([denied]);
  expect(await perform(platform, ["broadcast", channel, "hi", { n: 2 }])).toEqual([signedOut]);
  expect(await perform(ann, ["broadcast", channel, "hi", { n: 3 }])).toEqual(["sent"]);
  expect(await socket.nextOf("broadcast_event")).toMatchObject({ data: { n: 3 } });
  expect(await perform(ann, ["broadcast", "nowhere", "hi", {}])).toMatchObject([{ status: 400 }]);
  await socket.close();
});

test("[FN20] [FN23] what users cannot do is not there, and nobody has to be named", async () => {
  expect((await platform.get<JsonValue>("/api/functions/members")).body).toEqual(["db", "storage", "broadcast"]);
  for (const kind of ["undefined", "text", "empty", "zero"]) {
    expect([kind, (await platform.get(`/api/functions/wrong/${kind}`)).body]).toEqual([kind, { text: "TypeError" }]);
  }
});

test("[FN24] hooks have it", async () => {
  const steps = [
    ["db", "notes", "get", "a1"],
    ["db", "notes", "insert", { owner: ann.id }],
  ];
  const byAnn = await ann.post<JsonObject>("/api/db/shared/tables/probes", { steps });
  expect(byAnn.status).toBe(201);
  const stored = await platform.service.get<{ items: JsonObject[] }>(
    "/api/db/shared/tables/probes?sort=createdAt:desc",
  );
  expect(stored.body.items[0]?.["results"]).toMatchObject([{ id: "a1" }, { owner: ann.id }]);
  await bob.post("/api/db/shared/tables/probes", { steps });
  const second = await platform.service.get<{ items: JsonObject[] }>(
    "/api/db/shared/tables/probes?sort=createdAt:desc",
  );
  expect(second.body.items[0]?.["results"]).toMatchObject([null, denied]);
});

test("[FN4] the rule of a route looks at records", async () => {
  expect((await ann.get("/api/functions/mine")).status).toBe(403);
  await platform.service.post("/api/db/shared/tables/members", { id: ann.id });
  const { status, body } = await ann.get<{ items: JsonObject[] }>("/api/functions/mine");
  expect([status, body.items.every(({ owner }) => owner === ann.id)]).toEqual([200, true]);
  expect((await bob.get("/api/functions/mine")).status).toBe(403);
  expect((await ann.get("/api/functions/table")).status).toBe(403);
});
