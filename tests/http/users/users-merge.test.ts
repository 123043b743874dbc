import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

// Two accounts of one person become one.

// Servers are killed and started again several times in one test.
setDefaultTimeout(30_000);

const KEY = "-key-0123456789abcdefghijklmnopqrstuvw";
const CONFIG = `{
  auth: { anonymous: true, users: {
    in: "shared",
    schema: { handle: { type: "string", unique: true }, leadId: { references: "users", onDelete: "setNull" } },
    access: { read: true, update: (auth, user) => user.id === auth?.id },
  } },
  serviceKeys: {
    admin: { key: "admin${KEY}", scopes: ["auth:admin:*:read", "auth:admin:*:write"] },
    full: { key: "full${KEY}", scopes: ["auth:admin:*:write", "auth:credentials:*:write"] },
    credentials: { key: "creds${KEY}", scopes: ["auth:credentials:*:write"] },
  },
  storage: { buckets: { own: { quota: { perUser: 1000 }, access: { read: (auth, file) => file.uploadedBy === auth?.id, write: true } } } },
  databases: { shared: { tables: {
    films: {
      schema: { ownerId: { references: "users", onDelete: "restrict" }, title: { type: "string" } },
      access: { read: true, insert: true },
    },
    teams: {
      schema: { memberIds: { type: "references", references: "users", onDelete: "remove" }, ownerId: { references: "users", onDelete: "setNull" } },
      access: { read: true },
    },
    seats: {
      schema: { userId: { references: "users", onDelete: "cascade" }, room: { type: "string" } },
      indexes: [{ fields: ["userId", "room"], unique: true }],
      access: { read: true, insert: true },
    },
    loose: { schema: { ofId: { type: "string" } }, access: { read: true } },
  } } },
}`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const TABLES = "/api/db/shared/tables";
type Counts = { records: Record<string, number>; files: number; identities: number };
const insert = async (table: string, body: JsonObject): Promise<string> => {
  const answer = await platform.service.post<{ id: string }>(`${TABLES}/${table}`, body);
  expect(answer.status).toBe(201);
  return answer.body.id;
};
const read = async (table: string, id: string): Promise<JsonObject | null> => {
  const { status, body } = await platform.service.get(`${TABLES}/${table}/${id}`);
  return status === 404 ? null : body;
};
const merge = (into: string, from: string, more: JsonObject = {}, by = platform.service) =>
  by.post<Counts & JsonObject>(`/api/auth/admin/users/${into}/merge`, { from, ...more });
const upload = async (by: SignedIn, key: string): Promise<void> => {
  const form = new FormData();
  form.set("key", key);
  form.set("file", new Blob(["abcde"], { type: "text/plain" }));
  const headers = { authorization: `Bearer ${by.token}` };
  const answer = await fetch(`${platform.url}/api/storage/own/upload`, { method: "POST", headers, body: form });
  expect(answer.ok).toBe(true);
};
const mailsTo = async (email: string): Promise<JsonObject[]> => {
  const { body } = await platform.service.get<{ mails: JsonObject[] }>("/api/auth/admin/outbox?limit=100");
  return body.mails.filter(({ to, kind }) => to === email && kind === "accountMerged");
};

test("[AU401] records, files and ways to sign in move; the other account is gone; role and claims stay", async () => {
  const into = await signIn(platform, { role: "editor", claims: { plan: "pro" } });
  const from = await signIn(platform, { role: "admin", claims: { plan: "free" } });
  const film = await insert("films", { ownerId: from.id, title: "Solaris" });
  const team = await insert("teams", { memberIds: [from.id, into.id], ownerId: from.id });
  const other = await insert("teams", { memberIds: [from.id] });
  const loose = await insert("loose", { ofId: from.id });
  await platform.service.patch(`${TABLES}/users/${into.id}`, { leadId: from.id });
  await upload(from, "a.txt");
  const before = (await read("films", film))?.["updatedAt"];
  await Bun.sleep(2);
  const { status, body } = await merge(into.id, from.id);
  expect([status, body]).toEqual([
    200,
    { records: { "shared/users": 1, "shared/films": 1, "shared/teams": 2 }, files: 1, identities: 0 },
  ]);
  expect(await read("films", film)).toMatchObject({ ownerId: into.id, title: "Solaris" });
  expect((await read("films", film))?.["updatedAt"]).not.toBe(before);
  expect(await read("teams", team)).toMatchObject({ memberIds: [into.id], ownerId: into.id });
  expect(await read("teams", other)).toMatchObject({ memberIds: [into.id] });
  expect(await read("loose", loose)).toMatchObject({ ofId: from.id });
  expect(await read("users", into.id)).toMatchObject({ leadId: into.id });
  expect(await read("users", from.id)).toBe(null);
  expect((await platform.service.get(`/api/auth/admin/users/${from.id}`)).status).toBe(404);
  const account = await platform.service.get(`/api/auth/admin/users/${into.id}`);
  expect(account.body).toMatchObject({ email: into.email, role: "editor", customClaims: { plan: "pro" } });
  expect((await from.get("/api/auth/me")).status).toBe(401);
  expect((await into.get("/api/auth/me")).status).toBe(200);
  const { email, password } = from;
  expect((await platform.post("/api/auth/signin", { email, password })).status).toBe(401);
  const file = await fetch(`${platform.url}/api/storage/own/a.txt`, {
    headers: { authorization: `Bearer ${into.token}` },
  });
  expect(await file.text()).toBe("abcde");
});

test("[AU401] identities and devices move, and an address of the other account proves nothing about this one", async () => {
  const into = await signIn(platform);
  const from = await signIn(platform);
  const file = new Database(join(platform.dataDirectory, "system.db"));
  const now = Date.now();
  for (const [id, email] of [
    ["one", from.email],
    ["two", into.email],
  ] as const) {
    file
      .query(
        "INSERT INTO identities (id, userId, provider, subject, email, createdAt, lastSignInAt, emailVerified) VALUES (?,?,?,?,?,?,?,1)",
      )
      .run(id, from.id, "acme", id, email, now, now);
  }
  file
    .query("INSERT INTO passkeys (id, userId, publicKey, deviceType, createdAt) VALUES (?,?,?,?,?)")
    .run("pk", from.id, new Uint8Array(4), "singleDevice", now);
  for (const [deviceId, userId, token] of [
    ["phone", from.id, "t1"],
    ["tab", from.id, "t2"],
    ["tab", into.id, "t3"],
  ] as const) {
    file
      .query(
        "INSERT INTO push_devices (userId, deviceId, token, platform, createdAt, registeredAt) VALUES (?,?,?,?,?,?)",
      )
      .run(userId, deviceId, token, "web", now, now);
  }
  expect((await merge(into.id, from.id)).body.identities).toBe(2);
  const identities = file.query("SELECT id, emailVerified FROM identities WHERE userId = ? ORDER BY id").all(into.id);
  expect(identities).toEqual([
    { id: "one", emailVerified: 0 },
    { id: "two", emailVerified: 1 },
  ]);
  expect(file.query("SELECT id FROM passkeys WHERE userId = ?").all(into.id)).toEqual([{ id: "pk" }]);
  expect(file.query("SELECT token FROM push_devices WHERE userId = ? ORDER BY token").all(into.id)).toEqual([
    { token: "t1" },
    { token: "t3" },
  ]);
  expect(file.query("SELECT count(*) AS n FROM push_devices WHERE userId = ?").get(from.id)).toEqual({ n: 0 });
  file.close();
});

test("[AU401] the phone number moves where the other account has none, and files of records do", async () => {
  const [into, from, second] = [await signIn(platform), await signIn(platform), await signIn(platform)];
  const [phone, other] = ["+436607234001", "+436607234002"];
  for (const [user, number] of [
    [from, phone],
    [second, other],
  ] as const) {
    const path = `/api/auth/admin/users/${user.id}`;
    expect((await platform.service.patch(path, { phone: number })).status).toBe(200);
  }
  const file = new Database(join(platform.dataDirectory, "system.db"));
  const claim = file.query(
    "INSERT INTO storage_claims (fileId, bucket, size, ownerId, namespace, instanceId, storedAt, isPending) VALUES (?, 'own', 7, ?, 'shared', '', 0, 0)",
  );
  claim.run(`claim-${from.id}`, from.id);
  await upload(from, `claims/${from.id}.txt`);
  const numberOf = async () =>
    (await platform.service.get<{ phone: string }>(`/api/auth/admin/users/${into.id}`)).body.phone;
  expect((await merge(into.id, from.id)).status).toBe(200);
  expect(await numberOf()).toBe(phone);
  expect(file.query("SELECT ownerId FROM storage_claims WHERE fileId = ?").get(`claim-${from.id}`)).toEqual({
    ownerId: into.id,
  });
  expect(file.query("SELECT count(*) AS n FROM storage_claims WHERE ownerId = ?").get(from.id)).toEqual({ n: 0 });
  // It has a number: the other one belongs to nobody.
  expect((await merge(into.id, second.id)).status).toBe(200);
  expect(await numberOf()).toBe(phone);
  const third = await signIn(platform);
  const given = await platform.service.patch(`/api/auth/admin/users/${third.id}`, { phone: other });
  expect(given.status).toBe(200);
  // Files of records count too.
  file.transaction(() => {
    for (let at = 0; at < 1001; at++) claim.run(`many-${third.id}-${at}`, third.id);
  })();
  expect((await merge(into.id, third.id)).status).toBe(409);
  file.close();
});

test("[AU402] a preview says what would move, and changes nothing", async () => {
  const [into, from] = [await signIn(platform), await signIn(platform)];
  const film = await insert("films", { ownerId: from.id });
  await upload(from, `${from.id}.txt`);
  const preview = await merge(into.id, from.id, { preview: true });
  expect([preview.status, preview.body]).toEqual([200, { records: { "shared/films": 1 }, files: 1, identities: 0 }]);
  expect(await read("films", film)).toMatchObject({ ownerId: from.id });
  expect((await from.get("/api/auth/me")).status).toBe(200);
  expect(await mailsTo(from.email)).toEqual([]);
  expect((await merge(into.id, from.id)).body).toEqual(preview.body);
});

test("[AU403] a value of a unique field that both have is 409, and nothing has moved", async () => {
  const [into, from] = [await signIn(platform), await signIn(platform)];
  const film = await insert("films", { ownerId: from.id });
  await insert("seats", { userId: into.id, room: "a" });
  const seat = await insert("seats", { userId: from.id, room: "a" });
  for (const more of [{ preview: true }, {}]) {
    const { status, body } = await merge(into.id, from.id, more);
    expect([status, String(body["message"])]).toEqual([409, expect.stringContaining("seats")]);
  }
  expect(await read("films", film)).toMatchObject({ ownerId: from.id });
  expect(await read("seats", seat)).toMatchObject({ userId: from.id });
  expect((await from.get("/api/auth/me")).status).toBe(200);
  await platform.service.patch(`${TABLES}/seats/${seat}`, { room: "b" });
  expect((await merge(into.id, from.id)).status).toBe(200);
  expect(await read("seats", seat)).toMatchObject({ userId: into.id, room: "b" });
});

test("[AU403] too many records and files are 409, an account with itself, an unknown and an anonymous one are refused", async () => {
  const [into, from] = [await signIn(platform), await signIn(platform)];
  for (let at = 0; at < 9; at++) {
    const inserts = Array.from({ length: 400 }, () => ({ ownerId: from.id, title: "x" }));
    expect((await platform.service.post(`${TABLES}/films/batch`, { inserts })).status).toBe(200);
  }
  const many = await merge(into.id, from.id);
  expect([many.status, String(many.body["message"])]).toEqual([409, expect.stringContaining("More refers")]);
  expect((await from.get("/api/auth/me")).status).toBe(200);
  const other = await signIn(platform);
  const file = new Database(join(platform.dataDirectory, "system.db"));
  const put = file.query(
    "INSERT INTO storage_objects (bucket, key, fileId, size, contentType, uploadedBy, uploaded) VALUES ('own', ?, ?, 1, 'text/plain', ?, 0)",
  );
  file.transaction(() => {
    for (let at = 0; at < 1001; at++) put.run(`many/${at}`, `many${at}`, other.id);
  })();
  file.close();
  expect((await merge(into.id, other.id)).status).toBe(409);
  const guest = await platform.post<{ user: { id: string } }>("/api/auth/signin/anonymous", {});
  expect((await merge(guest.body.user.id, into.id)).status).toBe(409);
  expect((await merge(into.id, guest.body.user.id)).status).toBe(200);
  expect((await merge(into.id, into.id)).status).toBe(400);
  expect((await merge(into.id, "nobody")).status).toBe(404);
  expect((await merge("nobody", into.id)).status).toBe(404);
  expect((await platform.service.post(`/api/auth/admin/users/${into.id}/merge`, {})).status).toBe(400);
});

const FAR_CONFIG = `{
  auth: { users: { in: "shared", schema: { leadId: { references: "users", onDelete: "setNull" } } } },
  databases: {
    shared: { tables: {} },
    projects: { tables: { tasks: {
      schema: { ownerId: { references: "shared/users", onDelete: "cascade" }, title: { type: "string" } },
      indexes: [{ fields: ["ownerId", "title"], unique: true }],
      access: { read: (auth) => [["ownerId", "==", auth?.id ?? ""]] },
    } } },
    boards: { instance: true, access: { open: true, create: true }, tables: { cards: { schema: {
      ownerId: { references: "shared/users", onDelete: "cascade" },
      reviewerId: { references: "shared/users", onDelete: "setNull" },
      guests: { type: "references", references: "shared/users", onDelete: "remove" },
      touched: { type: "datetime", onUpdate: "now" },
    }, access: { read: true } } } },
  },
}`;
const FAR_TASKS = "/api/db/projects/tables/tasks";
const cards = (board: string) => `/api/db/boards/${board}/tables/cards`;

test("[AU407] references of other files move to the account that stays: namespaces, open instances, and those opened later", async () => {
  const far = await testPlatform({ config: FAR_CONFIG });
  const { service } = far;
  const [into, from] = [await signIn(far), await signIn(far)];
  const inserted = async (path: string, body: JsonObject): Promise<string> => {
    const answer = await service.post<{ id: string }>(path, body);
    expect(answer.status).toBe(201);
    return answer.body.id;
  };
  // More than one transaction moves.
  for (const part of [0, 1, 2, 3, 4, 5]) {
    const inserts = Array.from({ length: 500 }, (_, at) => ({ ownerId: from.id, title: `task ${part}-${at}` }));
    expect((await service.post(`${FAR_TASKS}/batch`, { inserts })).status).toBe(200);
  }
  const taken = await inserted(FAR_TASKS, { ownerId: into.id, title: "task 0-7" });
  const card = { ownerId: from.id, reviewerId: from.id, guests: [from.id, into.id] };
  const open = await inserted(cards("open"), card);
  const later = await inserted(cards("later"), card);
  await far.restart();
  // Opens one of the instances.
  await service.get(`${cards("open")}/${open}`);
  const merged = (more: JsonObject) =>
    service.post<Counts>(`/api/auth/admin/users/${into.id}/merge`, { from: from.id, ...more });
  // A card that refers three times is one, of whatever instance.
  const records = { "projects/tasks": 3000, "boards/cards": 2 };
  for (const more of [{ preview: true }, {}]) {
    const answer = await merged(more);
    expect([answer.status, answer.body.records]).toEqual([200, records]);
  }
  const total = async (owner: string): Promise<unknown> => {
    const filter = encodeURIComponent(JSON.stringify([["ownerId", "==", owner]]));
    return (await service.get<{ total: number }>(`${FAR_TASKS}/count?filter=${filter}`)).body.total;
  };
  await until("the tasks to move", async () => (await total(from.id)) === 0);
  // What both had stays once: the other one ends as with a deletion.
  expect(await total(into.id)).toBe(3000);
  expect((await service.get(`${FAR_TASKS}/${taken}`)).status).toBe(200);
  const moved = { ownerId: into.id, reviewerId: into.id, guests: [into.id] };
  await until("the open instance", async () => {
    return (await service.get<JsonObject>(`${cards("open")}/${open}`)).body["ownerId"] === into.id;
  });
  for (const [board, id] of [
    ["open", open],
    ["later", later],
  ] as const) {
    const { body } = await service.get<JsonObject>(`${cards(board)}/${id}`);
    expect([board, body]).toEqual([board, expect.objectContaining(moved)]);
  }
  await far.stop();
});

test("[TB919] an instance for which the log was cut moves its references as well, to the heir of an heir", async () => {
  const far = await testPlatform({ config: FAR_CONFIG });
  const { service } = far;
  const [a, b, c, d] = [await signIn(far), await signIn(far), await signIn(far), await signIn(far)];
  for (const [id, owner] of [
    ["a", a],
    ["d", d],
  ] as const) {
    expect((await service.post(cards("cut"), { id, ownerId: owner.id })).status).toBe(201);
  }
  await far.restart();
  for (const [into, from] of [
    [b, a],
    [c, b],
  ] as const) {
    expect((await service.post(`/api/auth/admin/users/${into.id}/merge`, { from: from.id })).status).toBe(200);
  }
  expect((await service.delete(`/api/auth/admin/users/${d.id}`)).status).toBe(200);
  await far.kill("SIGTERM");
  const file = new Database(join(far.dataDirectory, "databases", "shared.db"));
  file.run(`DELETE FROM "_platform_tombstones" WHERE "seq" < (SELECT max("seq") FROM "_platform_tombstones")`);
  file.close();
  await far.restart();
  expect((await service.get(`${cards("cut")}/a`)).body).toMatchObject({ ownerId: c.id });
  expect((await service.get(`${cards("cut")}/d`)).status).toBe(404);
  await far.stop();
});

test("[AU407] after a preview or a refusal nothing of other files has moved, and a later deletion ends it", async () => {
  const far = await testPlatform({ config: FAR_CONFIG });
  const { service } = far;
  const [into, from] = [await signIn(far), await signIn(far)];
  const task = await service.post<{ id: string }>(FAR_TASKS, { ownerId: from.id, title: "one" });
  const merged = (more: JsonObject) =>
    service.post(`/api/auth/admin/users/${into.id}/merge`, { from: from.id, ...more });
  expect((await merged({ preview: true })).status).toBe(200);
  expect((await service.get(`${FAR_TASKS}/${task.body.id}`)).body).toMatchObject({ ownerId: from.id });
  expect((await service.delete(`/api/auth/admin/users/${from.id}`)).status).toBe(200);
  await until("the task to go", async () => (await service.get(`${FAR_TASKS}/${task.body.id}`)).status === 404);
  await far.stop();
});

test("[AU407] SIGKILL at any moment of merges: every record of another file has an owner, the account that stays", async () => {
  const far = await testPlatform({ config: FAR_CONFIG });
  let merges = 0;
  for (let round = 0; round < 4; round++) {
    const users = Array.from({ length: 20 }, (_, at) => ({
      id: `r${round}-${at}`,
      email: `r${round}-${at}@example.com`,
    }));
    expect((await far.service.post("/api/admin/auth/users/import", { users })).status).toBe(200);
    for (let at = 0; at < 20; at += 2) {
      const from = `r${round}-${at + 1}`;
      const inserts = Array.from({ length: 200 }, (_, n) => ({
        id: `t${round}-${at}-${n}`,
        ownerId: from,
        title: `${n}`,
      }));
      expect((await far.service.post(`${FAR_TASKS}/batch`, { inserts })).status).toBe(200);
      expect((await far.service.post(cards(`b${at % 4}`), { id: `c${round}-${at}`, ownerId: from })).status).toBe(201);
    }
    const asked = Array.from({ length: 10 }, async (_, pair) => {
      await Bun.sleep(pair * 2);
      const path = `/api/auth/admin/users/r${round}-${pair * 2}/merge`;
      await far.service.post(path, { from: `r${round}-${pair * 2 + 1}` }).catch(() => null);
    });
    await Bun.sleep(5 + round * 9);
    await far.kill();
    await Promise.all(asked);
    await far.restart();
    for (let at = 0; at < 20; at += 2) {
      const [into, from] = [`r${round}-${at}`, `r${round}-${at + 1}`];
      const isMerged = (await far.service.get(`${TABLES}/users/${from}`)).status === 404;
      const owner = isMerged ? into : from;
      if (isMerged) merges += 1;
      const filter = encodeURIComponent(JSON.stringify([["ownerId", "==", owner]]));
      const { body } = await far.service.get<{ total: number }>(`${FAR_TASKS}/count?filter=${filter}`);
      const card = await far.service.get<JsonObject>(`${cards(`b${at % 4}`)}/c${round}-${at}`);
      expect([round, at, body.total, card.body["ownerId"]]).toEqual([round, at, 200, owner]);
    }
  }
  expect(merges).toBeGreaterThan(0);
  await far.stop();
});

test("[AU404] a merge needs auth:credentials:*:write and auth:admin:*:write, is in the audit log, and both are told", async () => {
  const [into, from] = [await signIn(platform), await signIn(platform)];
  const by = (key: string) => platform.withKey(key + KEY);
  expect((await merge(into.id, from.id, {}, by("admin"))).status).toBe(403);
  expect((await merge(into.id, from.id, { preview: true }, by("admin"))).status).toBe(403);
  expect((await merge(into.id, from.id, {}, by("creds"))).status).toBe(403);
  expect((await into.post(`/api/auth/admin/users/${into.id}/merge`, { from: from.id })).status).toBe(401);
  expect((await merge(into.id, from.id, {}, by("full"))).status).toBe(200);
  for (const email of [into.email, from.email]) expect((await mailsTo(email)).length).toBe(1);
  const log = await platform.service.get<{ entries: JsonObject[] }>(`/api/admin/audit?target=users/${into.id}`);
  expect(log.body.entries.filter(({ action }) => action === "user.merge")).toMatchObject([
    { actor: { kind: "serviceKey", name: "full" }, after: { from: from.id } },
  ]);
});

test("[AU405] merges and deletions of the same accounts at once: one of them happens, and no record refers to nobody", async () => {
  for (let round = 0; round < 6; round++) {
    const [a, b, c] = [await signIn(platform), await signIn(platform), await signIn(platform)];
    const teams = await insert("teams", { memberIds: [a.id, b.id, c.id] });
    const answers = await Promise.all([
      merge(a.id, b.id),
      merge(b.id, a.id),
      merge(c.id, a.id),
      platform.service.delete(`/api/auth/admin/users/${b.id}`),
      ...Array.from({ length: 8 }, () => a.post(`${TABLES}/seats`, { userId: b.id, room: crypto.randomUUID() })),
    ]);
    for (const { status } of answers) expect([200, 201, 400, 401, 404, 409]).toContain(status);
    const members = (await read("teams", teams))?.["memberIds"] as string[];
    for (const id of members) expect(await read("users", id)).not.toBe(null);
    const seats = await platform.service.get<{ items: JsonObject[] }>(`${TABLES}/seats?limit=500`);
    const owners = [...new Set(seats.body.items.map(({ userId }) => String(userId)))];
    for (const id of owners) expect(await read("users", id)).not.toBe(null);
  }
});

test("[AU406] SIGKILL at any moment of merges: each has happened as a whole or not at all when the next start answers", async () => {
  const killed = await testPlatform({ config: CONFIG });
  const service = () => killed.service;
  for (let round = 0; round < 6; round++) {
    const pairs: { into: string; from: string; films: string[]; isAnswered: boolean }[] = [];
    const users = Array.from({ length: 40 }, (_, at) => ({
      id: `r${round}-${at}`,
      email: `r${round}-${at}@example.com`,
    }));
    expect((await service().post("/api/admin/auth/users/import", { users })).status).toBe(200);
    for (let at = 0; at < 40; at += 2) {
      const [into, from] = [`r${round}-${at}`, `r${round}-${at + 1}`];
      const inserts = Array.from({ length: 10 }, (_, film) => ({ id: `f${round}-${at}-${film}`, ownerId: from }));
      expect((await service().post(`${TABLES}/films/batch`, { inserts })).status).toBe(200);
      pairs.push({ into, from, films: inserts.map(({ id }) => id), isAnswered: false });
    }
    const asked = pairs.map(async (pair, at) => {
      await Bun.sleep(at);
      const answer = await service()
        .post(`/api/auth/admin/users/${pair.into}/merge`, { from: pair.from })
        .catch(() => null);
      pair.isAnswered = answer?.status === 200;
    });
    await Bun.sleep(3 + round * 7);
    await killed.kill();
    await Promise.all(asked);
    await killed.restart();
    for (const { into, from, films, isAnswered } of pairs) {
      const isGone = (await service().get(`/api/auth/admin/users/${from}`)).status === 404;
      expect((await service().get(`${TABLES}/users/${from}`)).status).toBe(isGone ? 404 : 200);
      if (isAnswered) expect(isGone).toBe(true);
      for (const id of films) {
        const { body } = await service().get(`${TABLES}/films/${id}`);
        expect(body["ownerId"]).toBe(isGone ? into : from);
      }
    }
  }
  await killed.stop();
});

test("[AU401] without a table of users, files and ways to sign in move", async () => {
  const plain = await testPlatform({
    config: `{ storage: { buckets: { own: { access: { read: true, write: true } } } } }`,
  });
  const [into, from] = [await signIn(plain), await signIn(plain)];
  const path = `/api/auth/admin/users/${into.id}/merge`;
  const preview = await plain.service.post<Counts>(path, { from: from.id, preview: true });
  expect(preview.body).toEqual({ records: {}, files: 0, identities: 0 });
  expect((await from.get("/api/auth/me")).status).toBe(200);
  expect((await plain.service.post(path, { from: from.id })).status).toBe(200);
  expect((await from.get("/api/auth/me")).status).toBe(401);
  expect((await plain.service.post(path, { from: from.id })).status).toBe(404);
  const log = await plain.service.get<{ entries: JsonObject[] }>(`/api/admin/audit?target=users/${into.id}`);
  expect(log.body.entries.map(({ action }) => action)).toContain("user.merge");
  await plain.stop();
});

test("[AU400] a merge that a start goes on with moves more files than one commit does", async () => {
  const stopped = await testPlatform({ config: CONFIG });
  try {
    const [into, from] = [await signIn(stopped), await signIn(stopped)];
    await stopped.kill();
    const system = new Database(join(stopped.dataDirectory, "system.db"));
    const birthOf = (id: string) =>
      system.query<{ seq: number }, [string]>("SELECT seq FROM users WHERE id = ?").get(id)?.seq;
    const put = system.query(
      "INSERT INTO storage_objects (bucket, key, fileId, size, contentType, uploadedBy, uploaded) VALUES ('own', ?, ?, 1, 'text/plain', ?, 0)",
    );
    system.transaction(() => {
      for (let at = 0; at < 2_100; at++) put.run(`many/${at}`, `many${at}`, from.id);
    })();
    const asked = { id: into.id, birth: birthOf(into.id), changes: {}, seq: 1 };
    const merge = { from: from.id, birth: birthOf(from.id), by: null };
    system.close();
    const shared = new Database(join(stopped.dataDirectory, "databases", "shared.db"));
    const meta = shared.query(
      `INSERT INTO "_platform_meta" ("name", "value") VALUES (?, ?) ON CONFLICT DO UPDATE SET "value" = excluded."value"`,
    );
    meta.run("users_asked", "1");
    meta.run(`users_asked:${"1".padStart(16, "0")}`, JSON.stringify({ ...asked, merge }));
    shared.close();
    await stopped.restart();
    expect((await stopped.service.get(`/api/auth/admin/users/${from.id}`)).status).toBe(404);
    const after = new Database(join(stopped.dataDirectory, "system.db"));
    const holders = after.query("SELECT uploadedBy, count(*) AS n FROM storage_objects GROUP BY 1").all();
    after.close();
    expect(holders).toEqual([{ uploadedBy: into.id, n: 2_100 }]);
  } finally {
    await stopped.stop();
  }
});
