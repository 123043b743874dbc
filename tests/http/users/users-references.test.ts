import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import {
  configSource,
  type HttpClient,
  type ListAnswer,
  openSocket,
  platformCommand,
  type SignedIn,
  signIn,
  type TestPlatform,
  testEnvironment,
  testPlatform,
  until,
} from "../../support/index.ts";

// References to the table of users, and what becomes of them when an account is deleted.

const CONFIG = `{
  api: { schemaEndpoint: true },
  auth: { users: {
    in: "shared",
    schema: { leadId: { references: "users", onDelete: "setNull" }, isHidden: { type: "boolean", default: false } },
    access: { read: (auth) => auth !== null && [["isHidden", "==", false]], update: (auth, user) => user.id === auth?.id },
  } },
  serviceKeys: { reader: {
    key: "reader-key-0123456789abcdefghijklmnopqrstu", scopes: ["db:shared:*:read", "auth:admin:*:read"],
  } },
  databases: { shared: { tables: {
    posts: {
      schema: { authorId: { references: "users", onDelete: "cascade", required: true }, title: { type: "string" } },
      access: { read: true, insert: true, update: true },
    },
    comments: {
      schema: {
        postId: { references: "posts", onDelete: "cascade" }, byId: { references: "users", onDelete: "setNull" },
        parentId: { references: "comments", onDelete: "cascade" },
      },
      access: { read: true, insert: true, update: true },
    },
    docs: {
      schema: {
        title: { type: "string" },
        editorIds: { type: "references", references: "users", onDelete: "remove" },
        anyId: { references: "users", onDelete: "setNull", mayBeHidden: true },
      },
      access: { read: true, insert: true, update: true },
    },
    invoices: {
      schema: { payerId: { references: "users", onDelete: "restrict", required: true } },
      access: { read: true, insert: true, delete: true },
    },
    pins: {
      schema: { postId: { references: "posts", onDelete: "restrict" }, ofId: { references: "users", onDelete: "cascade" } },
      access: { read: true, insert: true, delete: true },
    },
    mine: {
      schema: { ownerId: { references: "users", onDelete: "setNull" } },
      access: { read: () => [{ some: { table: "users", where: [["id", "==", { field: "ownerId" }], ["leadId", "==", null]] } }] },
    },
    log: { schema: { text: { type: "string" } } },
  } } },
  triggers: { cleared: {
    on: { table: "shared.comments", events: ["update"] },
    run: async ({ before, after, app }) => {
      if (before.byId === null || after.byId !== null) return;
      await app.db("shared").table("log").insert({ text: String(before.byId) + " " + String(after.byId) });
    },
  } },
  routes: (api) => api.post("/delete", async ({ app, body }) => { await app.users.delete(body.id); return {}; }),
}`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let key: HttpClient;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = [await signIn(platform), await signIn(platform)];
  key = platform.service;
});
afterAll(() => platform.stop());

const TABLES = "/api/db/shared/tables";
const insert = async (table: string, body: JsonObject, by: HttpClient = key): Promise<string> => {
  const answer = await by.post<{ id: string }>(`${TABLES}/${table}`, body);
  expect(answer.status).toBe(201);
  return answer.body.id;
};
const read = async (table: string, id: string): Promise<JsonObject | null> => {
  const { status, body } = await key.get(`${TABLES}/${table}/${id}`);
  return status === 404 ? null : body;
};
const problem = (body: JsonObject, field: string): JsonValue | undefined =>
  ((body["data"] ?? {}) as Record<string, JsonObject>)[field]?.["code"];
const remove = (id: string) => key.delete(`/api/auth/admin/users/${id}`);

test("[TB880] a record refers to users who exist and whom its writer may read", async () => {
  const hidden = await signIn(platform);
  await hidden.patch(`${TABLES}/users/${hidden.id}`, { isHidden: true });
  expect((await ann.post(`${TABLES}/posts`, { authorId: bob.id })).status).toBe(201);
  const refused = [
    await ann.post(`${TABLES}/posts`, { authorId: "nobody" }),
    await ann.post(`${TABLES}/posts`, { authorId: hidden.id }),
    await ann.post(`${TABLES}/docs`, { editorIds: [bob.id, hidden.id] }),
    await ann.patch(`${TABLES}/users/${ann.id}`, { leadId: "nobody" }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
  const fields = ["authorId", "authorId", "editorIds", "leadId"];
  for (const [at, { body }] of refused.entries()) expect(problem(body, fields[at] ?? "")).toBe("unknown_reference");
  expect(String(refused[0]?.body["message"]).replace("nobody", hidden.id)).toBe(String(refused[1]?.body["message"]));
  await insert("docs", { anyId: hidden.id }, ann);
  expect((await ann.patch(`${TABLES}/users/${ann.id}`, { leadId: bob.id })).body["leadId"]).toBe(bob.id);
  await ann.patch(`${TABLES}/users/${ann.id}`, { leadId: null });
});

test("[TB881] users are expanded under their rules and with the addresses that the caller may see", async () => {
  const id = await insert("posts", { authorId: ann.id, title: "x" });
  const hidden = await signIn(platform);
  const other = await insert("posts", { authorId: hidden.id });
  await hidden.patch(`${TABLES}/users/${hidden.id}`, { isHidden: true });
  const expanded = async (by: HttpClient, post: string) => {
    const { body } = await by.get(`${TABLES}/posts/${post}`, { query: { expand: "authorId" } });
    return ((body["expand"] ?? {}) as JsonObject)["authorId"] as JsonObject | null;
  };
  const reader = platform.withKey("reader-key-0123456789abcdefghijklmnopqrstu");
  expect((await expanded(ann, id))?.["email"]).toBe(ann.email);
  expect((await expanded(bob, id))?.["email"]).toBe(null);
  expect((await expanded(reader, id))?.["email"]).toBe(ann.email);
  expect(await expanded(bob, other)).toBe(null);
  expect((await expanded(key, other))?.["email"]).toBe(hidden.email);
  const back = await reader.get<ListAnswer>(`${TABLES}/users`, {
    query: { expand: "posts(authorId)", filter: JSON.stringify([["id", "==", ann.id]]) },
  });
  expect(JSON.stringify(back.body.items[0]?.["expand"])).toContain(id);
  const docs = await insert("docs", { editorIds: [bob.id, ann.id] });
  const { body } = await bob.get(`${TABLES}/docs/${docs}`, { query: { expand: "editorIds" } });
  const names = (body["expand"] as { editorIds: JsonObject[] }).editorIds.map((one) => [one["id"], one["email"]]);
  expect(names).toEqual([
    [bob.id, bob.email],
    [ann.id, null],
  ]);
});

test("[TB881] relations, filters of several and lookups go over such references", async () => {
  const cem = await signIn(platform);
  const mine = await insert("mine", { ownerId: cem.id });
  expect((await bob.get(`${TABLES}/mine/${mine}`)).status).toBe(200);
  await cem.patch(`${TABLES}/users/${cem.id}`, { leadId: bob.id });
  expect((await bob.get(`${TABLES}/mine/${mine}`)).status).toBe(404);
  const docs = await insert("docs", { editorIds: [cem.id] });
  const having = async () => {
    const { body } = await ann.get<ListAnswer>(`${TABLES}/docs`, {
      query: { filter: JSON.stringify([["editorIds", "has", cem.id]]) },
    });
    return body.items.map(({ id }) => id);
  };
  expect(await having()).toEqual([docs]);
  await remove(cem.id);
  expect(await having()).toEqual([]);
});

test("[AU323] a deleted account goes with the onDelete of what refers to it, by every way", async () => {
  const ways: ((user: SignedIn) => Promise<{ status: number }>)[] = [
    ({ id }) => remove(id),
    (user) => user.delete("/api/auth/me"),
    ({ id }) => key.post("/api/functions/delete", { id }),
  ];
  for (const way of ways) {
    const user = await signIn(platform);
    const post = await insert("posts", { authorId: user.id });
    const kept = await insert("posts", { authorId: ann.id });
    const under = await insert("comments", { postId: post, byId: ann.id });
    const by = await insert("comments", { postId: kept, byId: user.id });
    const child = await insert("comments", { parentId: under, byId: user.id });
    const doc = await insert("docs", { editorIds: [ann.id, user.id, bob.id], anyId: user.id });
    const led = await signIn(platform);
    await led.patch(`${TABLES}/users/${led.id}`, { leadId: user.id });
    await user.patch(`${TABLES}/users/${user.id}`, { leadId: user.id });
    const pin = await insert("pins", { postId: post, ofId: user.id });
    expect((await way(user)).status).toBe(200);
    expect(await read("users", user.id)).toBe(null);
    for (const [table, id] of [
      ["posts", post],
      ["comments", under],
      ["comments", child],
      ["pins", pin],
    ] as const)
      expect(await read(table, id)).toBe(null);
    expect((await read("comments", by))?.["byId"]).toBe(null);
    expect(await read("docs", doc)).toMatchObject({ editorIds: [ann.id, bob.id], anyId: null });
    expect((await read("users", led.id))?.["leadId"]).toBe(null);
    await until("the trigger has run", async () => {
      const { body } = await key.get<ListAnswer>(`${TABLES}/log`, { query: { limit: 500 } });
      return body.items.some(({ text }) => text === `${user.id} null`);
    });
  }
});

test("[US386] a deletion answers what has ended, and how many records referred to the user", async () => {
  const user = await signIn(platform);
  const { email, password } = user;
  await platform.post("/api/auth/signin", { email, password });
  const ended = { sessions: 2, factors: 0, identities: 0, passkeys: 0 };
  for (let count = 0; count < 120; count++) await insert("docs", { editorIds: [user.id, ann.id], anyId: user.id });
  const post = await insert("posts", { authorId: user.id });
  await insert("comments", { postId: post, byId: ann.id });
  const answer = await remove(user.id);
  expect(answer.body).toEqual({
    ok: true,
    report: { records: { "shared/docs": 120, "shared/posts": 1, "shared/comments": 1 }, ...ended },
  });
  const lonely = await signIn(platform);
  expect((await remove(lonely.id)).body).toMatchObject({ report: { records: {}, ...ended, sessions: 1 } });
  expect((await remove(lonely.id)).status).toBe(404);
});

test("[AU323] a reference that restricts makes it 409, and nothing has changed", async () => {
  const user = await signIn(platform);
  const by = await insert("comments", { byId: user.id });
  const invoice = await insert("invoices", { payerId: user.id });
  for (const answer of [await remove(user.id), await user.delete("/api/auth/me")]) {
    expect([answer.status, answer.body["message"]]).toEqual([409, "Records of invoices refer to this one by payerId"]);
  }
  expect((await user.get("/api/auth/me")).status).toBe(200);
  expect((await read("comments", by))?.["byId"]).toBe(user.id);
  await key.delete(`${TABLES}/invoices/${invoice}`);
  // A record of somebody else keeps a post of the user, however deep.
  const post = await insert("posts", { authorId: user.id });
  const pin = await insert("pins", { postId: post, ofId: ann.id });
  expect((await remove(user.id)).body["message"]).toBe("Records of pins refer to this one by postId");
  expect((await user.get("/api/auth/me")).status).toBe(200);
  await key.delete(`${TABLES}/pins/${pin}`);
  expect((await remove(user.id)).status).toBe(200);
  expect(await read("posts", post)).toBe(null);
});

test("[AU323] feeds get the changes, and the record goes after them", async () => {
  const user = await signIn(platform);
  const comment = await insert("comments", { byId: user.id });
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: ann.token });
  await socket.expect({ type: "auth_success" });
  for (const table of ["comments", "users"]) {
    socket.send({ type: "subscribe", channel: `realtime:shared:${table}` });
    await socket.nextOf("subscribed");
  }
  await remove(user.id);
  await socket.expect({ type: "db_change", changeType: "modified", docId: comment, data: { byId: null } });
  await socket.expect({ type: "db_change", changeType: "removed", docId: user.id });
  await socket.close();
});

/** Writes many comments of a user at once. */
async function manyComments(byId: string, count: number): Promise<void> {
  for (let done = 0; done < count; done += 500) {
    const inserts = Array.from({ length: 500 }, () => ({ byId }));
    expect((await key.post(`${TABLES}/comments/batch`, { inserts })).status).toBeLessThan(300);
  }
}
const countOf = async (filter: JsonValue): Promise<number> =>
  Number((await key.get(`${TABLES}/comments/count`, { query: { filter: JSON.stringify(filter) } })).body["total"]);

test("[AU324] an account with more references than one transaction takes goes in steps; nobody refers to it meanwhile", async () => {
  const user = await signIn(platform);
  await manyComments(user.id, 8_000);
  const before = await countOf([["byId", "==", null]]);
  let isDone = false;
  const statuses = new Set<number>();
  const others = (async () => {
    while (!isDone) statuses.add((await ann.post(`${TABLES}/comments`, { byId: user.id })).status);
  })();
  const deleted = await remove(user.id);
  isDone = true;
  await others;
  expect(deleted.status).toBe(200);
  expect(await read("users", user.id)).toBe(null);
  expect(await countOf([["byId", "==", user.id]])).toBe(0);
  expect(await countOf([["byId", "==", null]])).toBeGreaterThanOrEqual(before + 8_000);
  expect(statuses.has(400)).toBe(true);
  expect([...statuses].every((status) => status === 201 || status === 400)).toBe(true);
}, 60_000);

test("[AU324] a chain and a ring of records that cascade go whole", async () => {
  const user = await signIn(platform);
  const postId = await insert("posts", { authorId: user.id });
  const chain = Array.from({ length: 3_000 }, (_, at) => ({ id: `c${at}`, parentId: at === 0 ? null : `c${at - 1}` }));
  for (let at = 0; at < chain.length; at += 500) {
    const inserts = chain.slice(at, at + 500).map((one) => ({ ...one, ...(one.parentId === null ? { postId } : {}) }));
    expect((await key.post(`${TABLES}/comments/batch`, { inserts })).status).toBeLessThan(300);
  }
  expect((await key.patch(`${TABLES}/comments/c0`, { parentId: "c2999" })).status).toBe(200);
  expect((await remove(user.id)).status).toBe(200);
  expect(await read("comments", "c0")).toBe(null);
  expect(await read("comments", "c2999")).toBe(null);
  expect(await read("posts", postId)).toBe(null);
}, 60_000);

test("[AU325] SIGKILL amid a deletion: the account is gone, and the next start goes on with what refers to it", async () => {
  for (const delay of [5, 40, 120]) {
    const user = await signIn(platform);
    await manyComments(user.id, 6_000);
    const deleted = remove(user.id).catch(() => null);
    await Bun.sleep(delay);
    await platform.kill("SIGKILL");
    await deleted;
    await platform.restart();
    const isGone = (await key.get(`/api/auth/admin/users/${user.id}`)).status === 404;
    if (isGone) {
      // Nobody can begin to refer to the record while it goes.
      expect((await ann.post(`${TABLES}/comments`, { byId: user.id })).status).toBe(400);
      await until("the record is gone", async () => (await read("users", user.id)) === null);
      expect(await countOf([["byId", "==", user.id]])).toBe(0);
    } else expect(await countOf([["byId", "==", user.id]])).toBe(6_000);
    const system = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
    await until("nothing is marked", () => system.query("SELECT * FROM user_marks").all().length === 0);
    system.close();
    if (!isGone) expect((await remove(user.id)).status).toBe(200);
  }
}, 120_000);

test("[AU325] a record that restricts, in a file of another moment, keeps the record of a deleted account: the log names it", async () => {
  const user = await signIn(platform);
  const comment = await insert("comments", { byId: user.id });
  const invoice = await insert("invoices", { payerId: user.id });
  await platform.kill();
  const system = new Database(join(platform.dataDirectory, "system.db"));
  system.run("PRAGMA foreign_keys = ON");
  system.run("DELETE FROM users WHERE id = ?", [user.id]);
  system.run("UPDATE user_records SET lastMark = lastMark + 1");
  system.run("INSERT INTO user_marks SELECT ?, lastMark FROM user_records", [user.id]);
  system.close();
  await platform.restart();
  await until("the log names it", () => platform.stderr().includes(`${user.id} cannot go yet`));
  await until("the log says so", () => platform.stderr().includes("Records of invoices refer to this one by payerId"));
  expect((await read("invoices", invoice))?.["payerId"]).toBe(user.id);
  expect(await read("users", user.id)).not.toBe(null);
  await key.delete(`${TABLES}/invoices/${invoice}`);
  await platform.restart();
  await until("the record is gone", async () => (await read("users", user.id)) === null);
  expect((await read("comments", comment))?.["byId"]).toBe(null);
});

test("[AU326] references are declared for ids that are there: the start names those without an account, and a migration", async () => {
  const notes = (field: JsonObject, more: JsonObject = {}) => ({ notes: { schema: { ofId: field }, ...more } });
  const config = (users: JsonObject, tables: JsonObject): JsonObject => ({
    auth: users,
    databases: { shared: { tables } },
  });
  const own = await testPlatform({ config: config({}, notes({ type: "string" })) });
  try {
    const dan = await signIn(own);
    for (const ofId of [dan.id, "gone", "lost"]) await own.service.post(`${TABLES}/notes`, { ofId });
    const users = { users: { in: "shared" } };
    const field = { references: "users", onDelete: "setNull" };
    const sql =
      'UPDATE "notes" SET "ofId" = NULL WHERE "ofId" IS NOT NULL AND "ofId" NOT IN (SELECT "id" FROM "users")';
    const failed = await own.restart({ config: config(users, notes(field)) }).then(
      () => "",
      (cause: unknown) => String(cause),
    );
    expect(failed).toContain(
      `shared.notes.ofId: 2 records refer to records of users that do not exist ("gone", "lost")`,
    );
    expect(failed).toContain(sql);
    const migrations = [{ version: 1, description: "no authors who are gone", up: sql }];
    await own.restart({ config: config({}, notes({ type: "string" })) });
    for (const [tables, told] of [
      [notes(field), '("gone", "lost")'],
      [notes(field, { migrations }), ""],
    ] as const) {
      writeFileSync(own.configFile, configSource(config(users, tables)));
      const args = ["check", "--config", own.configFile, "--data", own.dataDirectory];
      const { exitCode, stdout, stderr } = Bun.spawnSync([...platformCommand(), ...args], { env: testEnvironment() });
      expect(String(stdout) + String(stderr)).toContain(told);
      expect(exitCode).toBe(told === "" ? 0 : 1);
    }
    await own.restart({ config: config(users, notes(field, { migrations })) });
    const { body } = await own.service.get<ListAnswer>(`${TABLES}/notes`);
    expect(body.items.map(({ ofId }) => ofId).sort()).toEqual([dan.id, null, null].sort());
    await own.service.delete(`/api/auth/admin/users/${dan.id}`);
    const after = await own.service.get<ListAnswer>(`${TABLES}/notes`);
    expect(after.body.items.map(({ ofId }) => ofId)).toEqual([null, null, null]);
  } finally {
    await own.stop();
  }
});
