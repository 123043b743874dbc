import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

const AUDIT_KEY = "audit-reader-key-0123456789abcdefghijklmn";
const EDITOR_KEY = "editor-of-everything-0123456789abcdefghij";
const OTHER_KEY = "key-value-only-key-0123456789abcdefghijk";
const CONFIG = `{
  databases: {
    shared: { tables: {
      notes: {
        access: { read: true, insert: true, update: true, delete: true },
        hooks: { afterInsert: async (auth, record, { db }) => {} },
      },
      unique: { schema: { name: { type: "string", unique: true } } },
      hooked: {
        hooks: { beforeInsert: (auth, record) => { if (record.refuse) throw new Error("no"); return record; } },
      },
    } },
    team: { instance: true, access: { open: true }, tables: { notes: {} } },
  },
  storage: { buckets: { photos: {} } },
  kv: { cache: {} },
  d1: { reports: {} },
  auth: { mfa: { totp: true }, anonymous: true },
  serviceKeys: {
    audit: { key: "${AUDIT_KEY}", scopes: ["audit:*:*:read"] },
    editor: { key: "${EDITOR_KEY}", scopes: ["db:*:*:*", "auth:*:*:*", "kv:*:*:*", "storage:*:*:*", "d1:*:*:*"] },
    other: { key: "${OTHER_KEY}", scopes: ["kv:namespace:*:read"] },
  },
  rateLimits: { signin: { requests: 1000, window: 60 }, auth: { requests: 1000, window: 60 } },
}`;

interface Entry {
  at: string;
  actor: { kind: string; name: string | null; as?: string };
  address: string | null;
  action: string;
  target: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  requestId: string | null;
}

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const entries = async (query = ""): Promise<Entry[]> => {
  const answer = await platform.withKey(AUDIT_KEY).get<{ entries: Entry[] }>(`/api/admin/audit?limit=200&${query}`);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body.entries;
};
const actions = async (query: string): Promise<string[]> => (await entries(query)).map(({ action }) => action);
const editor = () => platform.withKey(EDITOR_KEY);
const notes = "/api/db/shared/tables/notes";

test("[AL1] records: who, when, from where, what, before and after", async () => {
  const { body: note } = await editor().post(notes, { id: "n1", text: "a" });
  await editor().patch(`${notes}/n1`, { text: "b" });
  const removed = await editor().delete(`${notes}/n1`);
  const [deleted, updated, inserted] = await entries("target=db/shared/notes/n1");
  expect(inserted).toEqual({
    at: expect.any(String),
    actor: { kind: "serviceKey", name: "editor" },
    address: "127.0.0.1",
    action: "record.insert",
    target: "db/shared/notes/n1",
    before: null,
    after: note,
    requestId: expect.any(String),
  } as never);
  expect([updated?.action, updated?.before?.["text"], updated?.after?.["text"]]).toEqual(["record.update", "a", "b"]);
  expect([deleted?.action, deleted?.before?.["text"], deleted?.after]).toEqual(["record.delete", "b", null]);
  expect(deleted?.requestId).toBe(removed.headers.get("x-request-id"));
  expect(Math.abs(Date.parse(deleted?.at ?? "") - Date.now())).toBeLessThan(600_000);
});

test("[AL1] instances, batches, transactions and upserts", async () => {
  await editor().post("/api/db/team/one/tables/notes", { id: "t1", text: "a" });
  expect(await actions("target=db/team/one/notes/t1")).toEqual(["record.insert"]);
  await editor().post(`${notes}/batch`, { inserts: [{ id: "b1" }, { id: "b2" }] });
  await editor().post(`${notes}/batch`, { updates: [{ id: "b1", data: { text: "x" } }], deletes: ["b2"] });
  await editor().post(`${notes}?upsert=true`, { id: "b1", text: "y" });
  expect(await actions("target=db/shared/notes/b1")).toEqual(["record.update", "record.update", "record.insert"]);
  expect(await actions("target=db/shared/notes/b2")).toEqual(["record.delete", "record.insert"]);
  await editor().post(`${notes}/batch-by-filter`, { action: "update", filter: [["id", "==", "b1"]], data: { n: 1 } });
  await editor().post("/api/db/shared/transaction", {
    operations: [
      { table: "notes", action: "insert", data: { id: "x1" } },
      { table: "notes", action: "delete", id: "b1" },
    ],
  });
  expect(await actions("target=db/shared/notes/b1")).toHaveLength(5);
  expect(await actions("target=db/shared/notes/x1")).toEqual(["record.insert"]);
});

test("[AL5] more than 100 changes of one write are one entry with their numbers", async () => {
  const inserts = Array.from({ length: 150 }, (_, at) => ({ id: `bulk-${at}` }));
  await editor().post(`${notes}/batch`, { inserts });
  const [entry, ...others] = await entries("action=record.batch");
  expect(others).toEqual([]);
  expect(entry).toMatchObject({ target: "db/shared/notes", before: null, after: { insert: 150 } });
  expect(await entries("target=db/shared/notes/bulk-1")).toEqual([]);
  await editor().post(`${notes}/batch`, { deletes: inserts.slice(0, 100).map(({ id }) => id) });
  expect(await entries("action=record.delete&target=db/shared/notes/bulk-1")).toHaveLength(1);
  // A hash of another server, so that nothing is hashed here.
  const passwordHash = "$2b$04$abcdefghijklmnopqrstuu5Lwr0cBYGQ0pTlWbPsN2Nc8mzUr2h0W";
  const users = Array.from({ length: 101 }, (_, at) => ({ email: `import-${at}@example.com`, passwordHash }));
  expect((await editor().post("/api/admin/auth/users/import", { users })).status).toBe(200);
  expect((await entries("action=user.batch")).map(({ target, after }) => [target, after])).toEqual([
    ["users", { create: 101 }],
  ]);
  expect((await entries("action=user.create")).filter(({ after }) => after?.["email"] === users[0]?.email)).toEqual([]);
});

test("[AL2] a change that fails or is undone leaves no entry", async () => {
  const unique = "/api/db/shared/tables/unique";
  await editor().post(unique, { id: "u1", name: "a" });
  expect((await editor().post(unique, { id: "u2", name: "a" })).status).toBe(409);
  expect((await editor().post(`${unique}/batch`, { inserts: [{ id: "u3" }, { id: "u4", name: "a" }] })).status).toBe(
    409,
  );
  expect((await editor().patch(`${unique}/missing`, { name: "b" })).status).toBe(404);
  expect((await editor().post("/api/db/shared/tables/hooked", { id: "h1", refuse: true })).status).toBe(500);
  expect((await entries("target=db/shared/unique")).map(({ target }) => target)).toEqual(["db/shared/unique/u1"]);
  expect(await entries("target=db/shared/hooked")).toEqual([]);
});

test("[AL9] what users and visitors change is not in the log", async () => {
  await user.post(notes, { id: "by-user" });
  await platform.post(notes, { id: "by-visitor" });
  await user.patch(`${notes}/by-user`, { text: "x" });
  expect(await entries("target=db/shared/notes/by-user")).toEqual([]);
  expect(await entries("target=db/shared/notes/by-visitor")).toEqual([]);
});

test("[AL1] users: created, changed, claims, disabled, deleted", async () => {
  const admin = "/api/auth/admin/users";
  const password = "correct horse battery";
  const { body } = await editor().post<{ user: { id: string } }>(admin, { email: "audited@example.com", password });
  const { id } = body.user;
  await editor().patch(`${admin}/${id}`, { displayName: "Ann" });
  await editor().put(`${admin}/${id}/claims`, { plan: "pro" });
  await editor().patch(`${admin}/${id}`, { disabled: true });
  await editor().patch(`${admin}/${id}`, { disabled: false });
  await editor().post(`${admin}/${id}/revoke`);
  await editor().delete(`${admin}/${id}/mfa`);
  await editor().delete(`${admin}/${id}`);
  const all = await entries(`target=users/${id}`);
  expect(all.map(({ action }) => action)).toEqual([
    "user.delete",
    "factor.delete",
    "user.revoke",
    "user.enable",
    "user.disable",
    "user.claims",
    "user.update",
    "user.create",
  ]);
  expect(all[5]).toMatchObject({ before: { customClaims: {} }, after: { customClaims: { plan: "pro" } } });
  expect(all[6]).toMatchObject({ before: { displayName: null }, after: { displayName: "Ann" } });
  expect(JSON.stringify(all)).not.toMatch(/correct horse|argon2|passwordHash/);
});

test("[AL1] files and keys", async () => {
  const form = new FormData();
  form.set("file", new File(["hello"], "a.txt", { type: "text/plain" }));
  form.set("key", "docs/a.txt");
  const headers = { "x-platform-service-key": EDITOR_KEY };
  const upload = await fetch(`${platform.url}/api/storage/photos/upload`, { method: "POST", body: form, headers });
  expect(upload.status).toBe(201);
  await editor().patch("/api/storage/photos/docs/a.txt/metadata", { a: "b" });
  await editor().delete("/api/storage/photos/docs/a.txt");
  const files = await entries("target=storage/photos/docs/a.txt");
  expect(files.map(({ action }) => action)).toEqual(["file.delete", "file.metadata", "file.upload"]);
  expect(files[2]).toMatchObject({ before: null, after: { key: "docs/a.txt", size: 5 } });
  await editor().post("/api/kv/cache", { action: "set", key: "theme", value: { dark: true } });
  await editor().post("/api/kv/cache", { action: "set", key: "theme", value: { dark: false } });
  await editor().post("/api/kv/cache", { action: "get", key: "theme" });
  await editor().post("/api/kv/cache", { action: "delete", key: "theme" });
  const keys = await entries("target=kv/cache/theme");
  expect(keys.map(({ action, before, after }) => [action, before, after])).toEqual([
    ["kv.delete", { dark: false }, null],
    ["kv.set", { dark: true }, { dark: false }],
    ["kv.set", null, { dark: true }],
  ]);
});

test("[AL3] SQL statements that change something, without their parameters", async () => {
  const run = (query: string, params: string[] = []) => editor().post("/api/d1/reports", { query, params });
  await run("CREATE TABLE t (a TEXT)");
  await run("INSERT INTO t VALUES (?)", ["hidden-parameter"]);
  await run("SELECT * FROM t");
  expect((await run("INSERT INTO missing VALUES (1)")).status).toBe(400);
  await run("WITH n AS (SELECT 1 AS a) SELECT a FROM n");
  const all = await entries("target=d1/reports");
  expect(all.map(({ after }) => after?.["sql"])).toEqual(["INSERT INTO t VALUES (?)", "CREATE TABLE t (a TEXT)"]);
  expect(JSON.stringify(all)).not.toContain("hidden-parameter");
});

test("[AL3] a statement in a large body is in the log as well, wherever its parameters stand, and they are not", async () => {
  const large = "x".repeat(100_000);
  const query = "INSERT INTO large VALUES (?, ?)";
  await editor().post("/api/d1/reports", { query: "CREATE TABLE large (a TEXT, b TEXT)", params: [] });
  for (const body of [
    { query, params: ["hidden-first", large] },
    { params: ["hidden-second", large], query },
  ]) {
    expect((await editor().post("/api/d1/reports", body)).status).toBe(200);
    const [entry] = await entries("target=d1/reports");
    expect(entry?.after).toEqual({ sql: query });
  }
  await editor().post("/api/d1/reports", { query: `SELECT '${large}'` });
  const all = await entries("target=d1/reports");
  expect(all.filter(({ after }) => after?.["sql"] === query)).toHaveLength(2);
  expect(JSON.stringify(all)).not.toMatch(/hidden-(?:first|second)|x{20}/);
});

test("[AL4] secrets are hidden, and long values cut", async () => {
  await editor().post(notes, {
    id: "s1",
    password: "hidden-1",
    nested: { apiKey: "hidden-2", token: "hidden-3" },
    ok: 1,
  });
  await editor().post("/api/kv/cache", { action: "set", key: "reset-token:1", value: "hidden-4" });
  await editor().post("/api/kv/cache", { action: "set", key: "user", value: { clientSecret: "hidden-5" } });
  await editor().post(notes, { id: "long", text: "x".repeat(100_000) });
  const all = await entries("");
  expect(JSON.stringify(all)).not.toMatch(/hidden-\d/);
  expect(all.find(({ target }) => target === "db/shared/notes/s1")?.after).toMatchObject({
    password: "[hidden]",
    ok: 1,
  });
  const long = all.find(({ target }) => target === "db/shared/notes/long");
  expect(JSON.stringify(long?.after).length).toBeLessThanOrEqual(16 * 1024);
  expect(JSON.stringify(all)).not.toMatch(/test-service-key|editor-of-everything/);
});

test("[AL6] sign-ins, failed ones, and factors", async () => {
  const email = "signs-in@example.com";
  const person = await signIn(platform, { email });
  expect((await entries(`target=users/${person.id}`)).map(({ action, actor }) => [action, actor])).toContainEqual([
    "signin",
    { kind: "user", name: person.id },
  ]);
  await platform.post("/api/auth/signin", { email, password: "hidden wrong password" });
  await platform.post("/api/auth/signin", { email: "nobody@example.com", password: "hidden wrong password" });
  const failed = await entries("action=signin.failed");
  expect(failed.map(({ target, after }) => [target, after?.["email"]])).toEqual([
    ["users", "nobody@example.com"],
    [`users/${person.id}`, email],
  ]);
  expect(failed[0]).toMatchObject({ actor: { kind: "anonymous", name: null }, address: "127.0.0.1" });
  for (let guess = 0; guess < 60; guess++) {
    await platform.post("/api/auth/signin", { email: `guess-${guess}@example.com`, password: "hidden wrong password" });
  }
  expect((await entries("action=signin.failed")).length).toBeLessThan(62);
  expect(JSON.stringify(await entries("action=signin"))).not.toContain("hidden wrong");
});

test("[AL1] whoever acts as a user is named, and whom they act as", async () => {
  const acting = { headers: { "x-platform-service-key": platform.serviceKey, "x-platform-act-as": user.id } };
  await platform.post(notes, { id: "acted" }, acting);
  await platform.post(
    notes,
    { id: "acted-nobody" },
    { headers: { ...acting.headers, "x-platform-act-as": "anonymous" } },
  );
  const [entry] = await entries("target=db/shared/notes/acted");
  expect(entry?.actor).toEqual({ kind: "serviceKey", name: "root", as: user.id });
  expect((await entries("target=db/shared/notes/acted-nobody"))[0]?.actor.as).toBe("anonymous");
  expect((await entries(`actor=${user.id}`)).map(({ target }) => target)).toContain("db/shared/notes/acted");
});

test("[AL7] filters, pages and wrong parameters", async () => {
  const all = await entries("target=db");
  expect(all.length).toBeGreaterThan(10);
  expect(all.every(({ target }) => target.startsWith("db/"))).toBe(true);
  expect(await entries("target=db/shared/note")).toEqual([]);
  expect((await actions("action=record")).every((action) => action.startsWith("record."))).toBe(true);
  expect(await actions("action=rec")).toEqual([]);
  expect((await entries("actor=editor")).every(({ actor }) => actor.name === "editor")).toBe(true);
  expect((await entries("actor=user")).every(({ actor }) => actor.kind === "user")).toBe(true);
  const middle = all[5]?.at ?? "";
  const since = await entries(`target=db&after=${middle}`);
  expect(since.length).toBeLessThan(all.length);
  expect(since.every(({ at }) => at >= middle)).toBe(true);
  expect(await entries(`after=${Date.now() + 60_000}`)).toEqual([]);
  const paged: Entry[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const { body } = await platform
      .withKey(AUDIT_KEY)
      .get<{ entries: Entry[]; cursor: string | null }>(`/api/admin/audit?target=db&limit=3${query}`);
    paged.push(...body.entries);
    cursor = body.cursor;
  }
  expect(paged).toEqual(all);
  for (const query of ["limit=0", "limit=201", "after=yesterday", "cursor=x", "unknown=1"]) {
    expect((await platform.withKey(AUDIT_KEY).get(`/api/admin/audit?${query}`)).status).toBe(400);
  }
});

test("[AL7] the log is for service keys with the scope", async () => {
  expect((await platform.get("/api/admin/audit")).status).toBe(401);
  expect((await user.get("/api/admin/audit")).status).toBe(401);
  expect((await platform.withKey(OTHER_KEY).get("/api/admin/audit")).status).toBe(403);
  expect((await editor().get("/api/admin/audit")).status).toBe(403);
  expect((await platform.withKey(AUDIT_KEY).get("/api/admin/audit")).status).toBe(200);
});

test("[AL9] without entries there is no log", async () => {
  const quiet = await testPlatform({ config: CONFIG });
  await quiet.post(notes, { id: "a" });
  expect((await quiet.service.get("/api/admin/audit")).body).toEqual({ entries: [], cursor: null });
  expect(existsSync(join(quiet.dataDirectory, "audit.db"))).toBe(false);
  await quiet.stop();
});

test("[AL2] entries survive SIGKILL with their changes, those of instances too, each once", async () => {
  const crashing = await testPlatform({ config: CONFIG });
  const acknowledged: string[] = [];
  let isRunning = true;
  const write = async (writer: number) => {
    for (let at = 0; isRunning; at++) {
      const id = `${writer}-${at}`;
      const path = writer % 2 === 0 ? `/api/db/team/i${writer}/tables/notes` : notes;
      const place = writer % 2 === 0 ? `db/team/i${writer}/notes` : "db/shared/notes";
      const answer = await crashing.service.post(path, { id }).catch(() => null);
      if (answer?.status === 201) acknowledged.push(`${place}/${id}`);
    }
  };
  for (let round = 0; round < 3; round++) {
    isRunning = true;
    const before = acknowledged.length;
    const writers = Array.from({ length: 8 }, (_, writer) => write(round * 8 + writer));
    await until("some writes are acknowledged", () => acknowledged.length > before + 100);
    await crashing.kill("SIGKILL");
    isRunning = false;
    await Promise.all(writers);
    await crashing.restart();
  }
  const logged = async (): Promise<string[]> => {
    const targets: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { body } = (await crashing.service.get<{ entries: Entry[]; cursor: string | null }>(
        `/api/admin/audit?limit=200&target=db${cursor === "" ? "" : `&cursor=${cursor}`}`,
      )) as { body: { entries: Entry[]; cursor: string | null } };
      targets.push(...body.entries.map(({ target }) => target));
      cursor = body.cursor;
    }
    return targets;
  };
  // What was on its way from the files of instances is taken soon after the start.
  await until("the log has all acknowledged changes", async () => {
    const present = new Set(await logged());
    return acknowledged.every((target) => present.has(target));
  });
  const all = await logged();
  expect(new Set(all).size).toBe(all.length);
  await crashing.kill("SIGTERM");
  // No entry without its record.
  const directory = join(crashing.dataDirectory, "databases");
  const files = [
    join(directory, "shared.db"),
    ...readdirSync(join(directory, "team")).map((name) => join(directory, "team", name)),
  ];
  let records = 0;
  for (const path of files.filter((name) => name.endsWith(".db"))) {
    using file = new Database(path);
    records += file.query<{ count: number }, []>("SELECT count(*) AS count FROM notes").get()?.count ?? 0;
    const table = file.query("SELECT 1 FROM sqlite_master WHERE name = '_platform_audit'").get();
    if (table !== null) expect(file.query("SELECT count(*) AS count FROM _platform_audit").get()).toEqual({ count: 0 });
  }
  expect(records).toBe(all.length);
  await crashing.stop();
});

test("[AL19] an unfinished upload that a service key ends is in the log, with whose it was", async () => {
  const uploads = "/api/storage/photos/multipart";
  const key = "unfinished.bin";
  const begun = await platform.service.post<{ uploadId: string }>(`${uploads}/create`, { key });
  const { uploadId } = begun.body;
  const ended = await platform.withKey(EDITOR_KEY).post(`${uploads}/abort`, { uploadId, key });
  expect(ended.status).toBe(200);
  const [entry] = await entries(`target=storage/photos/${key}`);
  expect(entry).toMatchObject({
    action: "file.abort",
    actor: { kind: "serviceKey", name: "editor" },
    before: { uploadedBy: null },
  });
});
