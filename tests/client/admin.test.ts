import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AdminClient, createAdminClient } from "../../src/client/admin/index.ts";
import { createClient, memoryStore, type PlatformError } from "../../src/client/index.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import type config from "./admin-config.ts";

let platform: TestPlatform;
let admin: AdminClient<typeof config>;
beforeAll(async () => {
  platform = await testPlatform({ config: await Bun.file(new URL("admin-config.ts", import.meta.url)).text() });
  admin = createAdminClient<typeof config>({ url: platform.url, serviceKey: platform.serviceKey });
});
afterAll(() => platform.stop());

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: PlatformError) => error.code,
  );

test("[TC110] tables, files and routes are those of the client, past all rules", async () => {
  const notes = admin.db("shared").table("notes");
  const note = await notes.insert({ text: "hello" });
  expect(await notes.where("text", "==", "hello").first()).toEqual(note);
  await notes.update(note.id, { text: "changed" });
  expect((await notes.get(note.id))?.text).toBe("changed");
  expect((await admin.db("shared").transaction([{ table: "notes", action: "delete", id: note.id }])).length).toBe(1);
  await admin.db("clubs", "c1").table("messages").insert({ text: "hi" });
  await admin.storage("files").upload("a", "bytes");
  expect(await (await admin.storage("files").download("a")).text()).toBe("bytes");
  expect((await admin.functions.key.get()).data).toEqual({ name: "root" });
  // @ts-expect-error: no such table
  admin.db("shared").table("nothing");
});

test("[TC111] users are made, invited, imported, listed, changed and deleted", async () => {
  const ann = await admin.users.create({ email: "ann@example.com", password: "correct horse battery" });
  expect(await admin.users.get(ann.id)).toMatchObject({ email: "ann@example.com", role: "user" });
  expect(await admin.users.get("nobody")).toBeNull();
  expect(await codeOf(admin.users.create({ email: "ann@example.com", password: "correct horse" }))).toBe("conflict");
  expect((await admin.users.update(ann.id, { role: "editor", appMetadata: { a: 1 } })).role).toBe("editor");
  await admin.users.setClaims(ann.id, { plan: "pro" });
  expect((await admin.users.get(ann.id))?.customClaims).toEqual({ plan: "pro" });
  const bob = await admin.users.invite({ email: "bob@example.com" });
  const [eve] = await admin.users.import([{ email: "eve@example.com", password: "correct horse battery" }]);
  const { items } = await admin.users.list({ q: "e" });
  expect(items.map(({ id }) => id)).toEqual([eve ?? ""]);
  const client = createClient({ url: platform.url, store: memoryStore() });
  await client.auth.signIn({ email: "ann@example.com", password: "correct horse battery" });
  await admin.users.removeFactors(ann.id);
  await admin.users.revokeSessions(ann.id);
  expect(await codeOf(client.auth.sessions.list())).toBe("unauthenticated");
  await admin.users.delete(bob.id);
  expect(await codeOf(admin.users.delete(bob.id))).toBe("not_found");
  client.close();
});

test("[TC111] key-value, SQL and vectors", async () => {
  const kv = admin.kv("cache");
  await kv.set("a", { n: 1 }, { ttl: 60 });
  expect(await kv.get<{ n: number }>("a")).toEqual({ n: 1 });
  expect(await kv.list({ prefix: "a" })).toEqual({ keys: ["a"], cursor: null });
  await kv.delete("a");
  expect(await kv.get("a")).toBeNull();
  const sql = admin.sql("main");
  await sql.query("CREATE TABLE t (a INTEGER)");
  expect((await sql.query("INSERT INTO t VALUES (?), (?)", [1, 2])).meta.changes).toBe(2);
  expect((await sql.query<{ a: number }>("SELECT a FROM t ORDER BY a")).results).toEqual([{ a: 1 }, { a: 2 }]);
  expect(
    (await admin.tableSql("shared").query("SELECT count(*) AS n FROM notes WHERE text = ?", ["none"])).results,
  ).toEqual([{ n: 0 }]);
  expect(await codeOf(admin.tableSql("clubs", "none").query("SELECT 1"))).toBe("not_found");
  const vectors = admin.vectors("texts");
  expect(await vectors.upsert([{ id: "x", values: [1, 0], metadata: { n: 1 } }])).toBe(1);
  expect((await vectors.search([1, 0], { topK: 1 }))[0]).toMatchObject({ id: "x", metadata: { n: 1 } });
  expect((await vectors.get(["x"]))[0]?.id).toBe("x");
  expect(await vectors.list({ prefix: "x" })).toEqual({ items: [{ id: "x", metadata: { n: 1 } }], cursor: null });
  expect((await vectors.describe()).vectorCount).toBe(1);
  expect(await vectors.delete(["x"])).toBe(1);
});

test("[TC321] buckets, and their unfinished uploads", async () => {
  expect(await admin.buckets.describe("files")).toMatchObject({ name: "files", quota: null });
  const begun = { key: "large.bin" };
  const created = await platform.service.post<{ uploadId: string }>("/api/storage/files/multipart/create", begun);
  const { uploadId } = created.body;
  const { items, cursor } = await admin.buckets.uploads("files");
  expect([items, cursor]).toMatchObject([[{ uploadId, key: "large.bin", ownerId: null, parts: 0 }], null]);
  await admin.buckets.abort("files", items[0] ?? { uploadId: "", key: "" });
  expect((await admin.buckets.uploads("files")).items).toEqual([]);
  expect(await codeOf(admin.buckets.abort("files", { uploadId, key: "large.bin" }))).toBe("not_found");
});

test("[TC111] push, broadcasts, jobs and instances", async () => {
  const client = createClient({ url: platform.url, store: memoryStore() });
  await client.auth.signInAnonymously();
  const userId = client.auth.user?.id ?? "";
  await client.push.register({ token: "t", platform: "android" }, { deviceId: "phone" });
  await admin.push.setMetadata(userId, "phone", { app: "1" });
  expect((await admin.push.devices(userId)).map(({ token }) => token)).toEqual(["t"]);
  expect(await codeOf(admin.push.send(userId, { title: "a", body: "b" }))).toBe("unavailable");
  expect(await codeOf(admin.push.sendMany([userId], { title: "a", body: "b" }))).toBe("unavailable");
  expect(await codeOf(admin.push.sendToToken("t", { title: "a", body: "b" }))).toBe("unavailable");
  expect(await codeOf(admin.push.sendToTopic("all", { title: "a", body: "b" }))).toBe("unavailable");
  expect(await codeOf(admin.push.broadcast({ title: "a", body: "b" }))).toBe("unavailable");
  expect(await admin.push.logs({ limit: 5 })).toEqual({ items: [], cursor: null });
  expect(await admin.push.listDevices({ platform: "android", topic: "all" })).toMatchObject({
    items: [{ id: "phone", userId, metadata: { app: "1" }, topics: ["all"] }],
    cursor: null,
  });
  expect((await admin.push.listDevices({ platform: "ios" })).items).toEqual([]);
  expect(await admin.push.topics()).toEqual({ items: [{ topic: "all", devices: 1 }], cursor: null });
  const heard: unknown[] = [];
  client.broadcast("news").on("said", (payload) => heard.push(payload));
  await until("it listens", () => client.broadcast("news").status === "live");
  await admin.broadcast("news").send("said", { text: "hi" });
  await until("it is heard", () => heard.length === 1);
  await admin.functions.work.post({});
  await until("the job has failed", async () => (await admin.jobs.list({ state: "failed" })).items.length === 1);
  const [job] = (await admin.jobs.list({ name: "work" })).items;
  expect(job).toMatchObject({ name: "work", data: { n: 1 }, attempt: 1 });
  await admin.jobs.retry(job?.id ?? "");
  expect(await codeOf(admin.jobs.cancel("none"))).toBe("not_found");
  expect(await codeOf(admin.jobs.runNow("none"))).toBe("not_found");
  expect(await codeOf(admin.jobs.runAgain("none", null))).toBe("not_found");
  await admin.db("clubs", "c2").table("messages").insert({ text: "hi" });
  const clubs = admin.instances("clubs");
  expect((await clubs.list({ prefix: "c2" })).items.map(({ id }) => id)).toEqual(["c2"]);
  await clubs.delete("c2");
  expect((await clubs.list({ prefix: "c2" })).items).toEqual([]);
  client.close();
});

test("[TC120] backups are made, listed, verified and downloaded", async () => {
  const { backups } = admin;
  const made = await backups.create();
  const name = made.backup;
  expect(made).toMatchObject({ action: "create", state: "done", error: null });
  const { items, keep } = await backups.list().then((list) => ({ ...list, items: list.backups }));
  expect([items.map((backup) => [backup.name, backup.verifiedAt]), keep]).toEqual([[[name, null]], 3]);
  expect(await backups.verify(name)).toMatchObject({ action: "verify", state: "done", backup: name });
  const bytes = await new Response(await backups.download(name)).arrayBuffer();
  expect(bytes.byteLength).toBe(items[0]?.size ?? 0);
  const linked = await fetch(await backups.link(name));
  expect((await linked.arrayBuffer()).byteLength).toBe(bytes.byteLength);
  expect(await codeOf(backups.verify("nothing"))).toBe("not_found");
  const [first, second] = await Promise.allSettled([backups.create(), backups.create()]);
  expect([first?.status, second?.status].sort()).toEqual(["fulfilled", "rejected"]);
});

test("[TC341] live rooms are listed, shown and closed, and players kicked", async () => {
  const client = createClient({ url: platform.url, store: memoryStore() });
  await client.auth.signInAnonymously();
  const userId = client.auth.user?.id ?? "";
  const room = await client.rooms("game").join("sunday");
  const { rooms, total } = await admin.rooms.list({ namespace: "game", prefix: "sun" });
  expect([rooms[0]?.id, rooms[0]?.players, total]).toEqual(["sunday", 1, 1]);
  expect(await admin.rooms.get("game", "sunday")).toMatchObject({
    players: [{ userId }],
    sharedState: { begun: true },
  });
  await admin.rooms.kick("game", "sunday", userId);
  await until("the player has left", () => room.status === "left");
  expect(await codeOf(admin.rooms.kick("game", "sunday", userId))).toBe("not_found");
  await client.rooms("game").join("monday");
  expect(await admin.rooms.close("game", "monday")).toBe(1);
  client.broadcast("overview").on("said", () => {});
  await until("it listens", () => client.broadcast("overview").status === "live");
  expect(await admin.realtime.overview({ prefix: "broadcast:overview" })).toMatchObject({
    channels: [{ name: "broadcast:overview", kind: "broadcast", subscribers: 1 }],
    total: 1,
  });
  client.close();
});

test("[TC111] the size of a table, and what its rules say", async () => {
  const notes = { namespace: "shared", table: "notes" };
  const { id } = await admin.db("shared").table("notes").insert({ text: "sized" });
  expect(await admin.tables.referrers(notes, "nothing refers to it")).toEqual({ items: [], cursor: null });
  const { rows, bytes, fileBytes } = await admin.tables.size(notes);
  expect(rows).toBeGreaterThan(0);
  expect(fileBytes).toBeGreaterThan(bytes);
  await admin.db("clubs", "sized").table("messages").insert({ text: "hi" });
  expect((await admin.tables.size({ namespace: "clubs", instanceId: "sized", table: "messages" })).rows).toBe(1);
  expect(await codeOf(admin.tables.size({ namespace: "shared", table: "nothing" }))).toBe("not_found");
  const [read, ...others] = await admin.tables.tryRules(notes, { as: "anonymous", id, operations: ["read"] });
  expect(read).toMatchObject({ operation: "read", allowed: false, decidedBy: "read", rule: null, status: 401 });
  expect(others).toEqual([]);
  expect((await admin.tables.tryRules(notes, { as: "anonymous", record: { text: "new" } })).length).toBe(4);
});

test("[TC112] what the scopes of a key do not allow is forbidden, a wrong key unauthenticated", async () => {
  const limited = createAdminClient<typeof config>({ url: platform.url, serviceKey: "limited-key-0123456789abcdef" });
  await limited.kv("cache").get("a");
  expect(await codeOf(limited.kv("cache").set("a", 1))).toBe("forbidden");
  expect(await codeOf(limited.users.list())).toBe("forbidden");
  const wrong = createAdminClient({ url: platform.url, serviceKey: "wrong" });
  expect(await codeOf(wrong.kv("cache").get("a"))).toBe("unauthenticated");
});

test("[TC113] in a browser or an app it throws, and says why", () => {
  const globals = globalThis as { document?: unknown };
  globals.document = {};
  try {
    expect(() => createAdminClient({ url: platform.url, serviceKey: "x" })).toThrow(/could read the service key/);
  } finally {
    delete globals.document;
  }
  const { navigator } = globalThis;
  for (const fake of [{ userAgent: "Mozilla/5.0" }, { product: "ReactNative" }]) {
    Object.defineProperty(globalThis, "navigator", { value: fake, configurable: true });
    try {
      expect(() => createAdminClient({ url: platform.url, serviceKey: "x" })).toThrow(/service key/);
    } finally {
      Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
    }
  }
});

test("[TC111] the audit log and analytics", async () => {
  const name = `audited-${crypto.randomUUID()}@example.com`;
  const { id } = await admin.users.create({ email: name, password: "correct horse battery" });
  const { items, cursor } = await admin.audit.list({ action: "user.create", target: `users/${id}`, limit: 1 });
  expect(items).toMatchObject([{ actor: { kind: "serviceKey", name: "root" }, target: `users/${id}` }]);
  expect(cursor).toBeNull();
  const { summary, timeSeries } = await admin.analytics.requests({ range: "1h", groupBy: "minute" });
  expect(summary.totalRequests).toBeGreaterThan(0);
  expect(timeSeries.reduce((sum, { requests }) => sum + requests, 0)).toBe(summary.totalRequests);
  const targets = await admin.analytics.targets({ range: "1h" });
  expect(targets.map(({ route }) => route)).toContain("/api/auth/admin/users");
  expect((await admin.analytics.slowRequests({ limit: 1 })).items.length).toBeLessThanOrEqual(1);
  await platform.post("/api/analytics/track", { events: [{ name: "seen", properties: { film: "Heat" } }] });
  expect((await admin.analytics.events({ event: "seen" })).items[0]?.properties).toEqual({ film: "Heat" });
  expect(await admin.analytics.topEvents()).toEqual([{ eventName: "seen", count: 1, uniqueUsers: 0 }]);
  expect((await admin.analytics.eventSeries({ range: "1h" })).at(-1)?.count).toBe(1);
});
