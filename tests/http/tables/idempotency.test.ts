import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import {
  type Answer,
  type ErrorAnswer,
  type HttpClient,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

const OPEN = "{ read: true, insert: true, update: true, delete: true }";
const CONFIG = `{
  databases: {
    shared: { tables: {
      notes: { schema: { text: { type: "text" }, n: { type: "integer", default: 0, max: 1000 } }, access: ${OPEN} },
      owned: { schema: { owner: { type: "string" }, text: { type: "string" } },
        access: { ...${OPEN}, read: (auth) => auth !== null && [["owner", "==", auth.id]] } },
      judged: { schema: { owner: { type: "string" } }, access: { ...${OPEN}, read: async (auth, record) => record.owner === auth?.id } },
      box: { schema: { text: { type: "string" } }, access: { insert: (auth) => auth !== null } },
      staff: { schema: { text: { type: "string" } }, access: { insert: (auth) => auth?.role === "editor", read: true } },
      gated: { access: ${OPEN}, hooks: { async beforeInsert(_auth, _record, app) {
        for (let n = 0; n < 400 && (await app.db("shared").table("gates").count()) === 0; n++) await Bun.sleep(10); } } },
      gates: {},
      counted: { access: ${OPEN}, hooks: { afterInsert: (_auth, record, app) => app.db("shared").table("effects").insert({ of: record.id }) } },
      effects: {},
    } },
    rooms: { instance: true, access: { create: (_auth, id) => !id.startsWith("no"), open: (auth, id) => id !== "shut" || auth?.role === "editor" },
      tables: { notes: { schema: { n: { type: "integer", default: 0 } }, access: ${OPEN} } } },
  },
}`;
const P = "/api/db/shared/tables";
const T = "/api/db/shared/transaction";

let platform: TestPlatform;
let user: SignedIn;
let other: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [user, other] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

let keys = 0;
const newKey = () => `key-${keys++}`;
const withKey = (key: string) => ({ headers: { "idempotency-key": key } });
const isReplay = ({ headers }: Answer<unknown>) => headers.get("idempotent-replay") === "true";
const total = async (table: string, at = P) =>
  (await platform.service.get<{ total: number }>(`${at}/${table}/count`)).body.total;
/** The status, whether it is a replay, and the body. */
const shown = (answer: Answer<unknown>) => [answer.status, isReplay(answer), answer.body];

test("[TB320] each kind of write is carried out once under its key, and its answer is given again", async () => {
  await user.post(`${P}/notes/batch`, { inserts: ["p", "q", "r"].map((id) => ({ id })) });
  const filter = [["id", "in", ["q", "r"]]];
  const increment = { n: { $op: "increment", value: 1 } };
  const requests: Record<string, (key: string, client: HttpClient) => Promise<Answer<JsonObject>>> = {
    insert: (key, client) => client.post(`${P}/notes`, { text: "once" }, withKey(key)),
    created: (key, client) => client.post(`${P}/notes?upsert=true`, { id: `u${key}`, text: "new" }, withKey(key)),
    upsert: (key, client) => client.post(`${P}/notes?upsert=true`, { id: "p", text: "again" }, withKey(key)),
    patch: (key, client) => client.patch(`${P}/notes/p`, increment, withKey(key)),
    batch: (key, client) =>
      client.post(`${P}/notes/batch`, { inserts: [{}], updates: [{ id: "p", data: increment }] }, withKey(key)),
    byFilter: (key, client) =>
      client.post(`${P}/notes/batch-by-filter`, { action: "update", filter, data: increment }, withKey(key)),
    transaction: (key, client) => {
      const operations = [
        { table: "notes", action: "insert", data: {} },
        { table: "notes", action: "update", id: "p", data: increment },
        { table: "effects", action: "upsert", data: { id: key } },
      ];
      return client.post(T, { operations }, withKey(key));
    },
  };
  const firsts: [string, string, HttpClient, unknown[]][] = [];
  for (const client of [user, platform.service]) {
    for (const [name, send] of Object.entries(requests)) {
      if (name === "transaction" && client === user) continue;
      const key = newKey();
      const first = await send(key, client);
      expect([name, first.status < 300, isReplay(first)]).toEqual([name, true, false]);
      const again = await send(key, client);
      expect([name, ...shown(again)]).toEqual([name, first.status, true, first.body]);
      firsts.push([name, key, client, [first.status, true, first.body]]);
    }
  }
  const counts = async () => [
    await total("notes"),
    (await user.get(`${P}/notes/p`)).body["n"],
    (await user.get(`${P}/notes/q`)).body["n"],
  ];
  const before = await counts();
  // Two callers: inserts, creating upserts, batches and one transaction.
  expect(before).toEqual([3 + 2 + 2 + 2 + 1, 2 + 2 + 1, 2]);
  await platform.kill("SIGKILL");
  await platform.restart();
  for (const [name, key, client, wanted] of firsts) {
    const send = requests[name];
    expect([name, send === undefined ? null : shown(await send(key, client))]).toEqual([name, wanted]);
  }
  expect(await counts()).toEqual(before);
});

test("[TB320] without the header, and on other requests with it, nothing is kept", async () => {
  const key = newKey();
  const deleted = await user.delete(`${P}/notes/none`, undefined, withKey(key));
  expect(deleted.status).toBe(404);
  expect((await user.get(`${P}/notes`, withKey(key))).status).toBe(200);
  expect((await user.post(`${P}/notes`, {}, withKey(key))).status).toBe(201);
  const [one, two] = [await user.post(`${P}/notes`, { text: "x" }), await user.post(`${P}/notes`, { text: "x" })];
  expect([isReplay(one), isReplay(two), one.body["id"] === two.body["id"]]).toEqual([false, false, false]);
});

test("[TB321] another request under the key is 422, before anything else but credentials", async () => {
  const key = newKey();
  const first = await user.post(`${P}/notes`, { text: "first" }, withKey(key));
  expect(first.status).toBe(201);
  const count = await total("notes");
  const send = (path: string, init: RequestInit) =>
    user.fetch(path, { ...init, headers: { "content-type": "application/json", "idempotency-key": key } });
  const body = JSON.stringify({ text: "first" });
  const others: [string, string, string][] = [
    ["POST", `${P}/notes`, JSON.stringify({ text: "second" })],
    ["POST", `${P}/notes`, `${body} `],
    ["POST", `${P}/notes?upsert=false`, body],
    ["POST", `${P}/judged`, body],
    ["POST", `${P}/nothing`, body],
    ["POST", `${P}/staff`, "not json"],
    ["POST", `${P}/notes/batch`, body],
    ["POST", T, "{}"],
    ["PATCH", `${P}/notes/x`, body],
  ];
  for (const [method, path, text] of others) {
    const response = await send(path, { method, body: text });
    const answer = (await response.json()) as ErrorAnswer;
    expect([method, path, response.status, answer.data]).toEqual([
      method,
      path,
      422,
      { idempotencyKey: { code: "invalid_value", message: expect.any(String) } },
    ]);
  }
  expect((await platform.as("broken").post(`${P}/notes`, {}, withKey(key))).status).toBe(401);
  expect(shown(await user.post(`${P}/notes`, { text: "first" }, withKey(key)))).toEqual([201, true, first.body]);
  expect(await total("notes")).toBe(count);
  // Each caller has its own keys.
  for (const client of [other, platform.service]) {
    const own = await client.post(`${P}/notes`, { text: "own" }, withKey(key));
    expect([own.status, isReplay(own), own.body["text"]]).toEqual([201, false, "own"]);
  }
});

test("[TB321] a body of any size is compared by its bytes", async () => {
  for (const length of [10, 70_000, 900_000]) {
    const key = newKey();
    const text = "x".repeat(length);
    const first = await user.post(`${P}/notes`, { text }, withKey(key));
    expect(first.status).toBe(201);
    expect((await user.post(`${P}/notes`, { text: `${text.slice(1)}y` }, withKey(key))).status).toBe(422);
    expect(shown(await user.post(`${P}/notes`, { text }, withKey(key)))).toEqual([201, true, first.body]);
    // In chunks, without a length.
    const chunked = await user.fetch(`${P}/notes`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: new Blob([JSON.stringify({ text })]).stream(),
    });
    expect([chunked.status, chunked.headers.get("idempotent-replay")]).toEqual([201, "true"]);
  }
});

test("[TB322] while the first request is under way its key is 409 with Retry-After, and it is carried out once", async () => {
  const key = newKey();
  const send = () => user.post<JsonObject & ErrorAnswer>(`${P}/gated`, { text: "slow" }, withKey(key));
  // Either may be the first to arrive, which then waits: the other one is answered at once.
  const both = [send(), send()] as const;
  const refusedAt = await Promise.race(both.map(async (one, index) => one.then(() => index)));
  const [first, refused] = refusedAt === 0 ? [both[1], await both[0]] : [both[0], await both[1]];
  expect([refused.status, refused.headers.get("retry-after"), refused.body.data]).toEqual([
    409,
    "1",
    { idempotencyKey: { code: "idempotency_in_progress", message: expect.any(String) } },
  ]);
  expect((await user.post(`${P}/notes`, {}, withKey(key))).status).toBe(409);
  expect((await other.post(`${P}/notes`, {}, withKey(key))).status).toBe(201);
  expect((await platform.service.post(`${P}/gates`, { id: "open" })).status).toBe(201);
  const answer = await first;
  expect(answer.status).toBe(201);
  expect(shown(await send())).toEqual([201, true, answer.body]);
  expect(await total("gated")).toBe(1);
});

test("[TB322] of many at once under one key one is carried out", async () => {
  const key = newKey();
  const count = await total("counted");
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => user.post(`${P}/counted`, { a: 1 }, withKey(key))),
  );
  const done = answers.filter(({ status }) => status === 201);
  expect(new Set(done.map(({ body }) => body["id"])).size).toBe(1);
  expect(done.filter((answer) => !isReplay(answer))).toHaveLength(1);
  expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
  expect(await total("counted")).toBe(count + 1);
});

test("[TB320] refusals are not kept: the key may be used again", async () => {
  const key = newKey();
  const send = (body: JsonValue, path = `${P}/notes`) => user.post(path, body, withKey(key));
  expect((await send({ nope: 1 })).status).toBe(400);
  expect((await send({ n: 5000 })).status).toBe(400);
  expect((await send([])).status).toBe(400);
  expect((await send({}, `${P}/staff`)).status).toBe(403);
  expect((await send({}, `${P}/nothing`)).status).toBe(404);
  expect((await send({ operations: [{ table: "notes", action: "delete", id: "none" }] }, T)).status).toBe(404);
  expect((await send({ text: "at last" })).status).toBe(201);
});

test("[TB320] anonymous callers and keys of another form are 400", async () => {
  for (const [client, key] of [
    [platform, "good"],
    [user, "with space"],
    [user, ""],
    [user, "x".repeat(129)],
    [user, "é"],
  ] as const) {
    const answer = await client.post<ErrorAnswer>(`${P}/notes`, { text: "never" }, withKey(key));
    expect([key, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([key, 400, ["idempotencyKey"]]);
  }
  expect((await user.post(`${P}/notes`, {}, withKey(`${"x".repeat(126)}!~`))).status).toBe(201);
  const never = await user.get(`${P}/notes?filter=${encodeURIComponent('[["text","==","never"]]')}`);
  expect(never.body["total"]).toBe(0);
});

test("[TB323] a replay shows what may be read now; the rest is { id }", async () => {
  const { service } = platform;
  const mine = { owner: user.id, text: "mine" };
  for (const table of ["owned", "judged"]) {
    const body = table === "owned" ? mine : { owner: user.id };
    const [key, batchKey] = [newKey(), newKey()];
    const first = await user.post(`${P}/${table}`, body, withKey(key));
    const sendBatch = () =>
      user.post<{ inserted: JsonObject[]; deleted: JsonObject[] }>(
        `${P}/${table}/batch`,
        { inserts: [body, body] },
        withKey(batchKey),
      );
    const batch = await sendBatch();
    const send = async () => shown(await user.post(`${P}/${table}`, body, withKey(key)));
    expect(await send()).toEqual([201, true, first.body]);
    const id = String(first.body["id"]);
    const [one, two] = batch.body.inserted;
    // Handed to somebody else, and deleted.
    await service.patch(`${P}/${table}/${id}`, { owner: "somebody" });
    await service.delete(`${P}/${table}/${one?.["id"]}`);
    expect(await send()).toEqual([201, true, { id }]);
    expect((await sendBatch()).body.inserted).toEqual([{ id: one?.["id"] ?? null }, two ?? {}]);
    // It may be read again.
    await service.patch(`${P}/${table}/${id}`, { owner: user.id });
    expect(await send()).toEqual([201, true, first.body]);
    await service.delete(`${P}/${table}/${id}`);
    expect(await send()).toEqual([201, true, { id }]);
  }
  // Also what the kept answer shows must be readable: here it belonged to somebody else then.
  await service.post(`${P}/owned`, { id: "given", owner: user.id, text: "t" });
  const key = newKey();
  const give = () => user.patch(`${P}/owned/given`, { text: "u" }, withKey(key));
  const given = await give();
  expect(given.body["text"]).toBe("u");
  expect(shown(await give())).toEqual([200, true, given.body]);

  const boxKey = newKey();
  const post = () => user.post(`${P}/box`, { text: "letter" }, withKey(boxKey));
  const posted = await post();
  expect(shown(await post())).toEqual([201, true, { id: posted.body["id"] ?? null }]);
  expect(await total("box")).toBe(1);
});

test("[TB323] transactions ask the rule of each record's table", async () => {
  const key = newKey();
  const operations = [
    { table: "owned", action: "insert", data: { owner: user.id } },
    { table: "notes", action: "insert", data: { text: "open" } },
    { table: "judged", action: "insert", data: { owner: "somebody" } },
  ];
  const send = () => user.post<{ results: JsonObject[] }>(T, { operations }, withKey(key));
  const first = await send();
  const [owned, note, judged] = first.body.results;
  expect([first.status, judged?.["owner"]]).toEqual([200, "somebody"]);
  await platform.service.patch(`${P}/owned/${owned?.["id"]}`, { owner: "somebody" });
  const again = await send();
  expect([again.status, isReplay(again), again.body.results]).toEqual([
    200,
    true,
    [{ id: owned?.["id"] ?? null }, note ?? {}, { id: judged?.["id"] ?? null }],
  ]);
});

test("[TB324] of an answer over 1 MiB the ids are kept", async () => {
  const key = newKey();
  const inserts = Array.from({ length: 300 }, (_, n) => ({ text: "x".repeat(5_000), n }));
  const send = () => user.post<{ inserted: JsonObject[] }>(`${P}/notes/batch`, { inserts }, withKey(key));
  const first = await send();
  expect([first.status, first.body.inserted[0]?.["text"]]).toEqual([200, "x".repeat(5_000)]);
  const again = await send();
  expect([again.status, isReplay(again)]).toEqual([200, true]);
  expect(again.body.inserted).toEqual(first.body.inserted.map(({ id }) => ({ id: id ?? null })));
});

test("[TB324] the keys and bytes that a file keeps for one caller are bounded", async () => {
  const [name = ""] = await Array.fromAsync(new Bun.Glob("**/shared.db").scan(platform.dataDirectory));
  const file = join(platform.dataDirectory, name);
  const caller = `user ${user.id}`;
  const count = async (column: "keys" | "bytes", value: number) => {
    await platform.kill("SIGTERM");
    const sqlite = new Database(file);
    sqlite.run(`UPDATE "_platform_idempotency_callers" SET "${column}" = ? WHERE "caller" = ?`, [value, caller]);
    sqlite.close();
    await platform.restart();
  };
  await count("bytes", 64 * 1024 * 1024);
  const key = newKey();
  const send = () => user.post(`${P}/notes`, { text: "ids only" }, withKey(key));
  const first = await send();
  expect([first.status, first.body["text"]]).toEqual([201, "ids only"]);
  expect(shown(await send())).toEqual([201, true, { id: first.body["id"] ?? null }]);

  const notes = await total("notes");
  await count("keys", 100_000);
  const refused = await user.post(`${P}/notes`, { text: "one too many" }, withKey(newKey()));
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "3600"]);
  expect(await total("notes")).toBe(notes);
  expect((await send()).status).toBe(201);
  expect((await user.post(`${P}/notes`, { text: "without a key" })).status).toBe(201);
  expect((await other.post(`${P}/notes`, {}, withKey(newKey()))).status).toBe(201);
});

test("[TB326] each instance keeps its own answers, and one that is not created keeps none", async () => {
  const at = (id: string) => `/api/db/rooms/${id}/tables`;
  const key = newKey();
  const insert = (id: string, client: HttpClient = user) => client.post(`${at(id)}/notes`, { n: 1 }, withKey(key));
  const [one, two] = [await insert("one"), await insert("two")];
  expect([one.status, two.status, isReplay(one), isReplay(two)]).toEqual([201, 201, false, false]);
  expect([shown(await insert("one")), shown(await insert("two"))]).toEqual([
    [201, true, one.body],
    [201, true, two.body],
  ]);
  await platform.restart();
  expect(shown(await insert("one"))).toEqual([201, true, one.body]);
  expect(await total("notes", at("one"))).toBe(1);

  const fresh = newKey();
  const filter = [["n", "==", 1]];
  const byFilter = () =>
    user.post(`${at("absent")}/notes/batch-by-filter`, { action: "delete", filter }, withKey(fresh));
  expect(shown(await byFilter())).toEqual([200, false, { processed: 0, succeeded: 0 }]);
  expect(shown(await byFilter())).toEqual([200, false, { processed: 0, succeeded: 0 }]);
  expect((await user.post(`${at("absent")}/notes/batch`, {}, withKey(newKey()))).status).toBe(200);
  expect((await user.post(`${at("no-way")}/notes`, {}, withKey(newKey()))).status).toBe(403);
  expect((await user.post(`${at("a.b")}/notes`, {}, withKey(newKey()))).status).toBe(400);
  const files = await Array.fromAsync(new Bun.Glob("**/rooms/*.db").scan(platform.dataDirectory));
  expect(files.map((name) => name.split("/").at(-1)).sort()).toEqual(["one.db", "two.db"]);
});

test("[TB326] who may not open an instance any more gets no replay of it", async () => {
  const key = newKey();
  const editor = await signIn(platform, { role: "editor" });
  const insert = () => editor.post("/api/db/rooms/shut/tables/notes", { n: 1 }, withKey(key));
  expect((await insert()).status).toBe(201);
  expect(isReplay(await insert())).toBe(true);
  await platform.service.patch(`/api/auth/admin/users/${editor.id}`, { role: "user" });
  const late = await insert();
  expect([late.status, isReplay(late)]).toEqual([403, false]);
});

test("[TB327] the headers are named for browsers and in the document", async () => {
  const preflight = await platform.fetch(`${P}/notes`, {
    method: "OPTIONS",
    headers: { origin: "https://a.example", "access-control-request-method": "POST" },
  });
  expect(preflight.headers.get("access-control-allow-headers")).toContain("Idempotency-Key");
  expect(preflight.headers.get("access-control-expose-headers")).toContain("Idempotent-Replay");
  const { body } = await platform.service.get<{
    paths: Record<string, Record<string, { parameters: { name: string }[] }>>;
  }>("/swagger/json");
  const names = (path: string, method: string) => body.paths[path]?.[method]?.parameters.map(({ name }) => name) ?? [];
  const base = "/api/db/{namespace}/tables/{table}";
  const taking = [
    [base, "post"],
    [`${base}/{id}`, "patch"],
    [`${base}/batch`, "post"],
    [`${base}/batch-by-filter`, "post"],
    ["/api/db/{namespace}/transaction", "post"],
  ] as const;
  for (const [path, method] of taking)
    expect([path, names(path, method)]).toEqual([path, expect.arrayContaining(["Idempotency-Key"])]);
  expect(names(`${base}/{id}`, "delete")).not.toContain("Idempotency-Key");
});
