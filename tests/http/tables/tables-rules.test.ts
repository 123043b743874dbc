import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type HttpClient,
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let editor: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const KEYS = {
  reader: "key-reader-0123456789",
  inserter: "key-inserter-0123456789",
  updater: "key-updater-0123456789",
  other: "key-other-0123456789",
  old: "key-old-0123456789abcdef",
  far: "key-far-0123456789abcdef",
};

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig, Refusal } from "platform";
      const owner = { ownerId: { type: "string" }, n: { type: "integer" }, secret: { type: "string", default: "hush" } };
      const own = (auth, record) => auth !== null && record.ownerId === auth.id;
      const signedIn = (rule) => (...args) => args[0] !== null && rule(...args);
      export default defineConfig({
        serviceKeys: {
          reader: { key: "${KEYS.reader}", scopes: ["db:shared:open:read", "db:shared:mine:read"] },
          inserter: { key: "${KEYS.inserter}", scopes: ["db:*:*:insert"] },
          updater: { key: "${KEYS.updater}", scopes: ["db:*:*:update"] },
          other: { key: "${KEYS.other}", scopes: ["kv:namespace:x:read"] },
          old: { key: "${KEYS.old}", expiresAt: "2020-01-01T00:00:00Z" },
          far: { key: "${KEYS.far}", ips: ["203.0.113.0/24"] },
        },
        databases: { shared: { tables: {
          locked: { schema: owner },
          open: { schema: owner, access: { read: true, insert: true, update: true, delete: true } },
          mine: { schema: owner, fts: ["secret"], access: {
            read: (auth) => auth === null ? false : [["ownerId", "==", auth.id]],
            insert: own, update: (auth, record, next) => own(auth, record) && next.ownerId === record.ownerId, delete: own } },
          visible: { schema: owner, fts: ["secret"], access: { read: true, insert: own, update: own, delete: own } },
          seen: { schema: owner, fts: ["secret"], access: { read: (_auth, record) => record.n !== 13, insert: true, update: true, delete: true } },
          throwingValue: { schema: owner, access: { read: () => { throw { code: 10n } }, insert: () => { throw { get name() { throw 1 } } } } },
          throwing: { schema: owner, access: { read: () => { throw new Error("broken") }, insert: () => "yes", update: () => 1, delete: () => null } },
          endless: { schema: owner, access: { read: (auth) => [["n", "<=", auth?.role === "editor" ? Infinity : NaN]] } },
          slow: { schema: owner, access: { read: async (auth) => { await Bun.sleep(2); return auth !== null },
            insert: async (auth, record) => { await Bun.sleep(2); return record.n < 10 },
            update: async (auth, record, next) => { await Bun.sleep(20); return record.n === 1 && next.n === 2 },
            delete: async (auth, record) => { await Bun.sleep(2); return own(auth, record) } } },
          roles: { schema: owner, access: { read: (auth) => auth?.role === "editor" || auth?.custom.team === "red" } },
          matching: { schema: owner, access: { read: true, insert: true, update: false, upsert: "matching" } },
          either: { schema: owner, access: { read: true, insert: true, update: false } },
          filtered: { schema: owner, access: { read: true, insert: true, update: (auth) => [["n", "<", 5]], delete: (auth) => [["n", "<", 5]] } },
          hooked: { schema: owner, access: { read: true, insert: true, update: true, delete: true }, hooks: {
            beforeInsert: (auth, record) => { if (record.n === 666) throw new Refusal("not that one"); return { ...record, ownerId: auth?.id ?? "nobody" } },
            beforeUpdate: (auth, record, changes) => { if (changes.n === 667) return { n: "bad" }; return { ...changes, secret: "was " + record.n } },
            beforeDelete: (auth, record) => { if (record.n === 668) throw new Refusal("stays") },
            afterInsert: async (_auth, record, app) => { await app.db("shared").table("log").insert({ what: "insert " + record.n }); throw new Error("ignored") },
            afterUpdate: async (_auth, record, before, app) => { await app.db("shared").table("log").insert({ what: "update " + before.n + " " + record.n }) },
            afterDelete: async (_auth, record, app) => { await app.db("shared").table("log").insert({ what: "delete " + record.n }) } } },
          asyncHook: { schema: owner, access: { read: true, insert: true }, hooks: {
            beforeInsert: async (auth, record, app) => { const total = await app.db("shared").table("log").count(); return { ...record, n: 1000 + (total >= 0 ? 1 : 0) } } } },
          filled: { schema: { ownerId: { type: "string", required: true }, n: { type: "number", required: true } },
            access: { read: true, insert: true }, hooks: {
            beforeInsert: (auth, record) => (record.n === 1 ? undefined : { ...record, ownerId: auth.id }) } },
          trimmed: { schema: { label: { type: "string", required: true } }, access: { read: true, insert: true }, hooks: {
            beforeInsert: (auth, record) => ({ ...record, label: record.label.trim() }) } },
          log: { schema: { what: { type: "string" } } },
          restRule: { schema: owner, access: { insert: true, read: signedIn(own), update: signedIn(own), delete: signedIn(own) } },
          defaultRule: { schema: owner, access: { insert: true, read: async (auth, record = null) => record?.ownerId === undefined || record.ownerId === auth?.id,
            update: (auth, record = null) => record?.ownerId === undefined || record.ownerId === auth?.id,
            delete: (auth, record = null) => record?.ownerId === undefined || record.ownerId === auth?.id } },
          narrowed: { schema: owner, access: { insert: true, read: signedIn((auth) => [["ownerId", "==", auth.id]]) } },
        } } },
      });`,
  });
  ann = await signIn(platform, { email: "ann@example.com" });
  bob = await signIn(platform, { email: "bob@example.com" });
  editor = await signIn(platform, { email: "editor@example.com", role: "editor" });
});
afterAll(() => platform.stop());

const put = async (table: string, body: JsonObject) =>
  expect((await platform.service.post(path(table), body)).status).toBe(201);
const status = async (answer: Promise<{ status: number }>) => (await answer).status;

test("[TB47] without a rule only a service key gets through", async () => {
  await put("locked", { id: "l1" });
  const ways = (client: HttpClient) => [
    client.get(path("locked")),
    client.get(`${path("locked")}/l1`),
    client.get(`${path("locked")}/count`),
    client.post(path("locked"), {}),
    client.patch(`${path("locked")}/l1`, {}),
    client.delete(`${path("locked")}/l1`),
    client.post(`${path("locked")}/batch`, {}),
    client.post(`${path("locked")}/batch-by-filter`, {}),
    client.post(`${path("locked")}?upsert=true`, {}),
  ];
  for (const answer of await Promise.all(ways(platform)))
    expect(answer).toMatchObject({ status: 401, body: { code: 401, message: "Authentication required" } });
  for (const answer of await Promise.all(ways(ann)))
    expect(answer).toMatchObject({ status: 403, body: { code: 403, message: "Access denied" } });
  expect(await status(platform.service.get(`${path("locked")}/l1`))).toBe(200);
});

test("[TB80] a rule that reads the record without declaring it is called with each record", async () => {
  for (const table of ["restRule", "defaultRule"]) {
    await put(table, { id: "a", ownerId: ann.id, n: 1 });
    await put(table, { id: "b", ownerId: bob.id, n: 1 });
    const ways: [number, Promise<{ status: number }>][] = [
      [200, ann.get(`${path(table)}/a`)],
      [403, ann.get(`${path(table)}/b`)],
      [403, ann.get(path(table))],
      [403, ann.get(`${path(table)}/count`)],
      [403, ann.patch(`${path(table)}/b`, { n: 2 })],
      [403, ann.delete(`${path(table)}/b`)],
      [200, ann.patch(`${path(table)}/a`, { n: 2 })],
    ];
    for (const [expected, answer] of ways) expect([table, await status(answer)]).toEqual([table, expected]);
    expect(await status(ann.delete(`${path(table)}/a`))).toBe(200);
    expect((await bob.get<ListAnswer>(path(table))).body.items).toMatchObject([{ id: "b", n: 1 }]);
  }
  await put("narrowed", { id: "a", ownerId: ann.id });
  await put("narrowed", { id: "b", ownerId: bob.id });
  expect((await ann.get<ListAnswer>(path("narrowed"))).body).toMatchObject({ items: [{ id: "a" }], total: 1 });
  expect(await status(ann.get(`${path("narrowed")}/b`))).toBe(404);
  expect(await status(platform.get(path("narrowed")))).toBe(401);
});

test("[TB48] a rule's filter limits all reads and hides the other records", async () => {
  for (const [id, who] of [
    ["m1", ann],
    ["m2", ann],
    ["m3", bob],
  ] as const)
    await put("mine", { id, ownerId: who.id, n: 1 });
  const M = path("mine");
  expect((await ann.get<ListAnswer>(M)).body).toMatchObject({ total: 2, items: [{ id: "m1" }, { id: "m2" }] });
  expect((await ann.get(`${M}/count`)).body).toEqual({ total: 2 });
  expect((await ann.get<ListAnswer>(`${M}/search?q=hush`)).body.total).toBe(2);
  expect(await status(ann.get(`${M}/m3`))).toBe(404);
  expect(await status(ann.patch(`${M}/m3`, { n: 2 }))).toBe(404);
  expect(await status(ann.delete(`${M}/m3`))).toBe(404);
  expect(await status(ann.post(`${M}/batch`, { deletes: ["m3"] }))).toBe(404);
  expect((await ann.post(`${M}/batch-by-filter`, { action: "delete", filter: [["id", "==", "m3"]] })).body).toEqual({
    processed: 0,
    succeeded: 0,
  });
  expect(
    (await ann.get<ListAnswer>(M, { query: { filter: JSON.stringify([["ownerId", "==", bob.id]]), sort: "secret" } }))
      .body.items,
  ).toEqual([]);
  expect(await status(platform.get(M))).toBe(401);
  expect((await bob.get<ListAnswer>(M)).body.total).toBe(1);
});

test("[TB49] a rule with two parameters sees each record", async () => {
  const S = path("seen");
  await platform.service.post(`${S}/batch`, {
    inserts: [
      { id: "a", n: 1 },
      { id: "b", n: 13 },
      { id: "c", n: 2 },
    ],
  });
  expect(await status(ann.get(`${S}/a`))).toBe(200);
  expect(await status(ann.get(`${S}/b`))).toBe(403);
  expect(await status(platform.get(`${S}/b`))).toBe(401);
  const list = await ann.get<ErrorAnswer>(S);
  expect(list.status).toBe(403);
  expect(list.body.message).toContain("filter");
  expect(await status(ann.get(`${S}/search?q=hush`))).toBe(403);
  expect(await status(ann.get(`${S}/count`))).toBe(403);
  const byId = await ann.get<ListAnswer>(S, { query: { limit: 1 } });
  expect(byId).toMatchObject({ status: 200, body: { total: null, items: [{ id: "a" }] } });
});

test("[TB112] where the read rule sees each record, nothing is filtered, sorted, searched or counted by what it hides", async () => {
  const S = path("seen");
  for (const query of [
    { filter: '[["n","<",10]]' },
    { orFilter: '[["n","<",10]]' },
    { filter: '[["n","==",12345]]' },
    { sort: "n" },
  ] as Record<string, string>[]) {
    for (const limit of ["1", "1000"]) {
      const answer = await ann.get<ErrorAnswer>(S, { query: { ...query, limit } });
      expect([query, answer.status]).toEqual([query, 403]);
      expect(answer.body.message).toContain("may return a filter");
      expect(await status(platform.get(S, { query: { ...query, limit } }))).toBe(401);
      expect(await status(platform.service.get(S, { query: { ...query, limit } }))).toBe(200);
    }
    expect(await status(ann.get(`${S}/count`, { query }))).toBe(403);
    expect(await status(ann.get(`${S}/search`, { query: { ...query, q: "hush" } }))).toBe(403);
  }
  expect(await status(ann.get(`${S}/count`))).toBe(403);
  expect(await status(ann.get(`${S}/search`, { query: { q: "nothinglikethis" } }))).toBe(403);
});

test("[TB50] each rule gets the record that it decides about", async () => {
  const V = path("visible");
  expect(await status(ann.post(V, { id: "v1", ownerId: ann.id }))).toBe(201);
  expect(await status(ann.post(V, { ownerId: bob.id }))).toBe(403);
  expect(await status(ann.post(V, {}))).toBe(403);
  expect(await status(bob.patch(`${V}/v1`, { n: 1 }))).toBe(403);
  expect(await status(bob.delete(`${V}/v1`))).toBe(403);
  expect(await status(bob.get(`${V}/v1`))).toBe(200);
  expect(await status(ann.patch(`${V}/v1`, { n: 1 }))).toBe(200);
  await put("mine", { id: "give", ownerId: ann.id });
  expect(await status(ann.patch(`${path("mine")}/give`, { ownerId: bob.id }))).toBe(403);
  expect(await status(ann.patch(`${path("mine")}/give`, { n: 5 }))).toBe(200);
  expect(await status(ann.delete(`${V}/v1`))).toBe(200);
  await platform.service.post(`${path("filtered")}/batch`, {
    inserts: [
      { id: "low", n: 1 },
      { id: "high", n: 9 },
    ],
  });
  expect(await status(ann.patch(`${path("filtered")}/high`, { secret: "x" }))).toBe(403);
  expect(await status(ann.patch(`${path("filtered")}/low`, { secret: "x" }))).toBe(200);
  expect(await status(ann.delete(`${path("filtered")}/high`))).toBe(403);
});

test("[TB51] a rule that throws or returns another value denies", async () => {
  const T = path("throwing");
  await put("throwing", { id: "t1" });
  for (const answer of [
    ann.get(T),
    ann.get(`${T}/t1`),
    ann.post(T, {}),
    ann.patch(`${T}/t1`, {}),
    ann.delete(`${T}/t1`),
  ]) {
    expect(await status(answer)).toBe(403);
  }
});

test("[TB51] a filter with a number that JSON does not have denies, as equal ones share totals and changes", async () => {
  await put("endless", { id: "e1", n: 1 });
  const editor = await signIn(platform, { role: "editor" });
  for (const user of [editor, ann]) {
    expect(await status(user.get(path("endless")))).toBe(403);
    expect(await status(user.get(`${path("endless")}/count`))).toBe(403);
    const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
    socket.send({ type: "auth", token: user.token });
    await socket.expect({ type: "auth_success" });
    socket.send({ type: "subscribe", channel: "realtime:shared:endless" });
    await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
    await socket.close();
  }
});

test("[TB51] whatever a rule throws: a value that is no error, and cannot be written as JSON or read at all", async () => {
  expect(await status(ann.get(path("throwingValue")))).toBe(403);
  expect(await status(ann.post(path("throwingValue"), {}))).toBe(403);
});

describe("asynchronous rules", () => {
  test("[TB52] they are awaited, and the record that they saw is written", async () => {
    const S = path("slow");
    expect(await status(platform.get(S))).toBe(401);
    expect(await status(ann.get(S))).toBe(200);
    expect(await status(ann.post(S, { id: "s1", n: 1, ownerId: ann.id }))).toBe(201);
    expect(await status(ann.post(S, { n: 11 }))).toBe(403);
    // All ten saw n = 1, but only the first may write: the others are decided by the record that it wrote.
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => status(ann.patch(`${S}/s1`, { n: { $op: "increment", value: 1 } }))),
    );
    expect(answers.filter((code) => code === 200).length).toBe(1);
    expect(answers.filter((code) => code === 403).length).toBe(9);
    expect((await ann.get(`${S}/s1`)).body["n"]).toBe(2);
    expect(await status(bob.delete(`${S}/s1`))).toBe(403);
    expect(await status(ann.delete(`${S}/s1`))).toBe(200);
    const hooked = await platform.post(path("asyncHook"), { n: 1 });
    expect(hooked).toMatchObject({ status: 201, body: { n: 1001 } });
  });
});

test("[TB52] hundreds of asynchronous rules in one batch", async () => {
  const S = path("slow");
  const inserts = Array.from({ length: 200 }, (_, index) => ({ id: `many-${index}`, n: index % 10, ownerId: ann.id }));
  const many = await ann.post<{ inserted: JsonObject[] }>(`${S}/batch`, { inserts });
  expect(many.status).toBe(200);
  expect(many.body.inserted.map((one) => one["id"])).toEqual(inserts.map((one) => one.id));
  const refused = await ann.post<ErrorAnswer>(`${S}/batch`, {
    inserts: [
      { id: "fine", n: 1 },
      { id: "not", n: 10 },
    ],
  });
  expect(refused.status).toBe(403);
  expect(Object.keys(refused.body.data ?? {})).toEqual(["inserts.1"]);
  expect((await ann.get(`${S}/fine`)).status).toBe(404);
  const byFilter = await ann.post(`${S}/batch-by-filter`, { action: "delete", filter: [["id", "contains", "many-"]] });
  expect(byFilter.body).toEqual({ processed: 200, succeeded: 200 });
});

test("[TB53] a caller without rights learns nothing", async () => {
  expect(await status(platform.post(path("locked"), "nonsense"))).toBe(401);
  expect(await status(ann.post(`${path("locked")}/batch`, { inserts: 5 }))).toBe(403);
  expect(await status(ann.get(`${path("locked")}?filter=nope`))).toBe(403);
  expect(await status(platform.patch(`${path("visible")}/missing`, {}))).toBe(401);
  expect(await status(platform.get(`${path("seen")}/missing`))).toBe(401);
  expect(await status(ann.patch(`${path("visible")}/missing`, {}))).toBe(404);
  expect(await status(platform.get("/api/db/shared/tables/nope"))).toBe(404);
});

test("[TB54] scoped service keys", async () => {
  await put("open", { id: "o1" });
  const reader = platform.withKey(KEYS.reader);
  expect(await status(reader.get(`${path("open")}/o1`))).toBe(200);
  expect(await status(reader.get(path("mine")))).toBe(200);
  expect(await status(reader.get(path("seen")))).toBe(403);
  expect(await status(reader.post(path("open"), {}))).toBe(403);
  expect(await status(reader.delete(`${path("open")}/o1`))).toBe(403);
  const inserter = platform.withKey(KEYS.inserter);
  expect(await status(inserter.post(path("locked"), {}))).toBe(201);
  expect(await status(inserter.get(path("open")))).toBe(403);
  expect(await status(inserter.post(`${path("open")}/batch`, { inserts: [{}], deletes: ["o1"] }))).toBe(403);
  expect(await status(platform.withKey(KEYS.other).get(path("open")))).toBe(403);
  expect(await status(platform.withKey(KEYS.old).get(path("open")))).toBe(401);
  expect(await status(platform.withKey(KEYS.far).get(path("open")))).toBe(403);
});

test("[TB54] an upsert by a key needs the scope for what it does", async () => {
  await put("open", { id: "up", n: 1 });
  const [inserter, updater] = [platform.withKey(KEYS.inserter), platform.withKey(KEYS.updater)];
  const upserts = async (client: HttpClient, id: string) => [
    await status(client.post(`${path("open")}?upsert=true`, { id, n: 2 })),
    await status(client.post(`${path("open")}/batch?upsert=true`, { inserts: [{ id: `${id}`, n: 3 }] })),
  ];
  expect(await upserts(inserter, "up")).toEqual([403, 403]);
  expect(await upserts(updater, "none")).toEqual([403, 403]);
  expect(await status(platform.service.get(`${path("open")}/none`))).toBe(404);
  expect((await platform.service.get(`${path("open")}/up`)).body["n"]).toBe(1);
  expect(await upserts(updater, "up")).toEqual([200, 200]);
  expect(await upserts(inserter, "new")).toEqual([201, 403]);
});

test("[TB56] bad credentials are refused where anyone may read", async () => {
  const get = (headers: Record<string, string>) => platform.get<ErrorAnswer>(path("open"), { headers });
  expect(await status(get({}))).toBe(200);
  expect((await get({ authorization: "Bearer nope" })).body).toMatchObject({ code: 401, message: "Invalid token" });
  expect((await get({ authorization: "Basic abc" })).body).toMatchObject({ code: 401, message: "Invalid token" });
  expect((await get({ "x-platform-service-key": "nope" })).body).toMatchObject({
    code: 401,
    message: "Invalid service key",
  });
  expect((await get({ "x-platform-service-key": "" })).body).toMatchObject({
    code: 401,
    message: "Invalid service key",
  });
  expect(await status(get({ authorization: `Bearer ${ann.token}x` }))).toBe(401);
});

test("[TB50] rules see roles and claims", async () => {
  expect(await status(ann.get(path("roles")))).toBe(403);
  expect(await status(editor.get(path("roles")))).toBe(200);
  const red = await signIn(platform, { claims: { team: "red" } });
  expect(await status(red.get(path("roles")))).toBe(200);
});

test("[TB35] upsert by either rule, or the matching one", async () => {
  await put("either", { id: "e1", n: 1 });
  expect(await status(ann.patch(`${path("either")}/e1`, { n: 2 }))).toBe(403);
  expect(await status(ann.post(`${path("either")}?upsert=true`, { id: "e1", n: 2 }))).toBe(200);
  expect(await status(ann.post(`${path("either")}/batch?upsert=true`, { inserts: [{ id: "e1", n: 3 }] }))).toBe(200);
  await put("matching", { id: "x1", n: 1 });
  expect(await status(ann.post(`${path("matching")}?upsert=true`, { id: "x1", n: 2 }))).toBe(403);
  expect(await status(ann.post(`${path("matching")}/batch?upsert=true`, { inserts: [{ id: "x1", n: 3 }] }))).toBe(403);
  expect(await status(ann.post(`${path("matching")}?upsert=true`, { id: "x2", n: 2 }))).toBe(201);
  expect(await status(ann.post(`${path("mine")}?upsert=true`, { id: "new", ownerId: bob.id }))).toBe(403);
});

test("[TB57] hooks before a write may change or refuse it", async () => {
  const H = path("hooked");
  const made = await ann.post(H, { id: "h1", n: 1, ownerId: "forged" });
  expect(made).toMatchObject({ status: 201, body: { ownerId: ann.id } });
  expect((await ann.post<ErrorAnswer>(H, { n: 666 })).body).toMatchObject({ code: 400, message: "not that one" });
  expect((await ann.patch(`${H}/h1`, { n: 2 })).body).toMatchObject({ n: 2, secret: "was 1" });
  expect(await status(ann.patch(`${H}/h1`, { n: 667 }))).toBe(400);
  await ann.post(H, { id: "h2", n: 668 });
  expect((await ann.delete<ErrorAnswer>(`${H}/h2`)).body).toMatchObject({ code: 400, message: "stays" });
  expect(await status(ann.post(`${H}/batch`, { inserts: [{ n: 5 }, { n: 666 }] }))).toBe(400);
});

test("[TB57] a hook may add required fields, and those that it does not add are required", async () => {
  const F = path("filled");
  expect(await ann.post(F, { n: 2 })).toMatchObject({ status: 201, body: { n: 2, ownerId: ann.id } });
  expect((await ann.post<ErrorAnswer>(F, { n: 1 })).body).toMatchObject({
    code: 400,
    data: { ownerId: { code: "required" } },
  });
  const none = await ann.post<ErrorAnswer>(F, {});
  expect(none.body).toMatchObject({ code: 400, data: { n: { code: "required" } } });
  expect(none.body.data).not.toHaveProperty("ownerId");
  const wrong = await ann.post<ErrorAnswer>(F, { n: "2", zz: 1 });
  expect(wrong.body).toMatchObject({ data: { n: { code: "invalid_type" }, zz: { code: "unknown_field" } } });
  const batch = await ann.post<ErrorAnswer>(`${F}/batch`, { inserts: [{ n: 2 }, { n: 1 }] });
  expect(batch.body).toMatchObject({ code: 400, data: { "inserts.1.ownerId": { code: "required" } } });
});

test("[TB57] where a hook fails because of a missing field, the answer names the field", async () => {
  expect((await ann.post(path("trimmed"), { label: " a " })).body).toMatchObject({ label: "a" });
  const missing = await ann.post<ErrorAnswer>(path("trimmed"), {});
  expect(missing.body).toMatchObject({ code: 400, message: "label is required and cannot be null" });
  expect(missing.body.data).toMatchObject({ label: { code: "required" } });
});

test("[TB58] hooks after a write run, and their failure changes nothing", async () => {
  const H = path("hooked");
  await ann.post(H, { id: "after", n: 70 });
  await ann.patch(`${H}/after`, { n: 71 });
  await ann.delete(`${H}/after`);
  const wanted = ["insert 70", "update 70 71", "delete 71"];
  let logged: JsonValue[] = [];
  await until("all of them have run", async () => {
    const { body } = await platform.service.get<ListAnswer>(path("log"), { query: { limit: 1000 } });
    logged = body.items.map((item) => item["what"] ?? null);
    return wanted.every((what) => logged.includes(what));
  });
  expect(logged).toEqual(expect.arrayContaining(wanted));
  expect(logged.filter((what) => what === "insert 5")).toEqual([]);
});

test("[TB55] every access to a record is decided by the same rule", async () => {
  const V = path("mine");
  await put("mine", { id: "door", ownerId: ann.id, n: 77, secret: "unlisted" });
  const filter = '[["n","==",77]]';
  const reading: [string, (client: HttpClient) => Promise<boolean>][] = [
    ["get", async (client) => (await client.get(`${V}/door`)).status === 200],
    ["list", async (client) => (await client.get<ListAnswer>(V, { query: { filter } })).body.items?.length === 1],
    [
      "cursor",
      async (client) => (await client.get<ListAnswer>(V, { query: { filter, after: "a" } })).body.items?.length === 1,
    ],
    [
      "count",
      async (client) => (await client.get<{ total: number }>(`${V}/count`, { query: { filter } })).body.total === 1,
    ],
    ["search", async (client) => (await client.get<ListAnswer>(`${V}/search?q=unlisted`)).body.items?.length === 1],
    [
      "batch-by-filter",
      async (client) =>
        (
          await client.post<{ processed: number }>(`${V}/batch-by-filter`, {
            action: "update",
            filter: [["n", "==", 77]],
            data: {},
          })
        ).body.processed === 1,
    ],
  ];
  const writing: [string, (client: HttpClient) => Promise<boolean>][] = [
    ["update", async (client) => (await client.patch(`${V}/door`, { secret: "changed" })).status === 200],
    [
      "batch update",
      async (client) =>
        (await client.post(`${V}/batch`, { updates: [{ id: "door", data: { secret: "changed" } }] })).status === 200,
    ],
    [
      "upsert",
      async (client) => (await client.post(`${V}?upsert=true`, { id: "door", secret: "changed" })).status === 200,
    ],
    [
      "batch upsert",
      async (client) =>
        (await client.post(`${V}/batch?upsert=true`, { inserts: [{ id: "door", secret: "changed" }] })).status === 200,
    ],
    [
      "by filter",
      async (client) =>
        (
          await client.post<{ succeeded: number }>(`${V}/batch-by-filter`, {
            action: "update",
            filter: [["n", "==", 77]],
            data: { secret: "changed" },
          })
        ).body.succeeded === 1,
    ],
    ["insert", async (client) => (await client.post(V, { ownerId: ann.id })).status === 201],
    [
      "batch insert",
      async (client) => (await client.post(`${V}/batch`, { inserts: [{ ownerId: ann.id }] })).status === 200,
    ],
  ];
  for (const [way, may] of [...reading, ...writing]) {
    expect([way, await may(platform)]).toEqual([way, false]);
    expect([way, await may(bob)]).toEqual([way, false]);
  }
  expect((await platform.service.get(`${V}/door`)).body["secret"]).toBe("unlisted");
  for (const [way, may] of [...reading, ...writing]) expect([way, await may(ann)]).toEqual([way, true]);
});
