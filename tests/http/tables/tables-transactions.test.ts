import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { connect, subscribe } from "../../ws/realtime/realtime-support.ts";

const KEYS = { scoped: "key-of-scoped-0123456789-abcdefghijklmn", other: "key-of-other-0123456789-abcdefghijklmno" };
const CONFIG = `{
  serviceKeys: {
    scoped: { key: "${KEYS.scoped}", scopes: ["db:shared:heard:insert", "db:shared:accounts:update"] },
    other: { key: "${KEYS.other}", scopes: ["kv:namespace:x:read"] },
  },
  databases: {
    shared: { tables: {
      accounts: { schema: { owner: { type: "string", required: true, max: 60 }, email: { type: "string", unique: true },
                            balance: { type: "integer", default: 0, min: 0 } },
        access: { read: true, insert: (auth, record) => record.owner === auth?.id, update: (auth) => auth !== null, delete: (auth) => auth !== null } },
      entries: { schema: { account: { type: "string", references: "accounts" }, amount: { type: "integer" }, code: { type: "string", pattern: "^[a-z]+$" } },
        access: { read: true, insert: (auth) => auth !== null } },
      hooked: { schema: { n: { type: "integer" }, doubled: { type: "integer" } }, access: { read: true, insert: true, update: true },
        hooks: { async beforeInsert(_auth, record) { if (record.n === 13) throw new Refusal("unlucky", { status: 409 }); return { ...record, doubled: record.n * 2 }; },
                 afterInsert: (_auth, record, app) => app.db("shared").table("heard").insert({ id: record.id }) } },
      slowRule: { schema: { n: { type: "integer" } }, access: { read: true, insert: async (_auth, record) => record.n < 10, update: async (_auth, stored, next) => next.n === stored.n + 1 } },
      heard: {}, closed: {},
    } },
    sealed: { tables: { notes: { access: { read: true } } } },
    rooms: { instance: true, access: { create: (_auth, id) => !id.startsWith("no"), open: true },
      tables: { notes: { schema: { n: { type: "integer", max: 5 } }, access: { read: true, insert: true, update: true } }, logs: { access: { read: true, insert: true } } } },
  },
}`;
const T = "/api/db/shared/transaction";

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: `import { Refusal } from "platform"; export default ${CONFIG};` });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

type Answer = { results: JsonObject[] } & ErrorAnswer;
const run = (client: { post: TestPlatform["post"] }, operations: JsonValue, path = T) =>
  client.post<Answer>(path, { operations });
const records = async (table: string, path = "/api/db/shared/tables") =>
  (await platform.service.get<{ items: JsonObject[] }>(`${path}/${table}`)).body.items;

test("[TB304] operations over several tables run in order, each sees the ones before it", async () => {
  const socket = await connect(platform, user);
  await subscribe(socket, "realtime:shared:accounts");
  const { status, body } = await run(user, [
    { table: "accounts", action: "insert", data: { id: "a", owner: user.id, balance: 10 } },
    { table: "entries", action: "insert", data: { id: "e", account: "a", amount: 10 } },
    { table: "accounts", action: "update", id: "a", data: { balance: { $op: "increment", value: 5 } } },
    { table: "accounts", action: "upsert", data: { email: "x@y.z", owner: user.id }, conflictTarget: "email" },
    {
      table: "accounts",
      action: "upsert",
      data: { email: "x@y.z", owner: user.id, balance: 3 },
      conflictTarget: "email",
    },
    { table: "accounts", action: "insert", data: { id: "gone", owner: user.id } },
    { table: "accounts", action: "delete", id: "gone" },
  ]);
  expect([status, body.results]).toEqual([
    200,
    [
      expect.objectContaining({ id: "a", balance: 10 }),
      expect.objectContaining({ id: "e", account: "a" }),
      expect.objectContaining({ id: "a", balance: 15 }),
      expect.objectContaining({ email: "x@y.z", balance: 0 }),
      expect.objectContaining({ id: String(body.results[3]?.["id"]), balance: 3 }),
      expect.objectContaining({ id: "gone" }),
      { id: "gone" },
    ],
  ]);
  expect(await records("accounts")).toHaveLength(2);
  await socket.expect({ changeType: "added", docId: "a", data: expect.objectContaining({ balance: 10 }) });
  await socket.close();
});

test("[TB304] all or nothing, in parallel too", async () => {
  expect(
    (await run(platform.service, [{ table: "accounts", action: "upsert", data: { id: "p", owner: "x" } }])).status,
  ).toBe(200);
  const transfers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      run(platform.service, [
        { table: "accounts", action: "update", id: "p", data: { balance: { $op: "increment", value: 1 } } },
        { table: "entries", action: "insert", data: { id: `p${n % 20}`, account: "p" } },
      ]),
    ),
  );
  expect(transfers.map(({ status }) => status).sort()).toEqual([...Array(20).fill(200), ...Array(10).fill(409)]);
  expect((await platform.get("/api/db/shared/tables/accounts/p")).body).toMatchObject({ balance: 20 });
  await platform.restart();
  expect((await platform.get("/api/db/shared/tables/accounts/p")).body).toMatchObject({ balance: 20 });
});

test("[TB306] an error names the operation and its field, and nothing is changed", async () => {
  const before = { table: "entries", action: "insert", data: { id: "never" } };
  const faults: [JsonObject, number, string, string][] = [
    [
      { table: "accounts", action: "insert", data: { owner: "x".repeat(70) } },
      400,
      "operations.1.data.owner",
      "too_long",
    ],
    [{ table: "accounts", action: "insert", data: { balance: 1 } }, 400, "operations.1.data.owner", "required"],
    [
      { table: "accounts", action: "update", id: "a", data: { nope: 1 } },
      400,
      "operations.1.data.nope",
      "unknown_field",
    ],
    [
      { table: "accounts", action: "update", id: "a", data: { balance: { $op: "increment", value: -100 } } },
      400,
      "operations.1.data.balance",
      "too_small",
    ],
    [
      { table: "entries", action: "insert", data: { account: "nobody" } },
      400,
      "operations.1.data.account",
      "unknown_reference",
    ],
    [{ table: "accounts", action: "insert", data: { id: "a", owner: "x" } }, 409, "operations.1.data.id", "not_unique"],
    [{ table: "accounts", action: "update", id: "nobody", data: {} }, 404, "operations.1", "not_found"],
    [{ table: "accounts", action: "delete", id: "nobody" }, 404, "operations.1", "not_found"],
    [{ table: "accounts", action: "delete", id: "a" }, 409, "operations.1", "conflict"],
    [{ table: "nothing", action: "delete", id: "a" }, 404, "operations.1.table", "not_found"],
    [{ table: "__proto__", action: "delete", id: "a" }, 404, "operations.1.table", "not_found"],
    [{ table: "accounts", action: "upsert", data: { owner: "x" } }, 400, "operations.1.data.id", "required"],
    [
      { table: "accounts", action: "upsert", data: { owner: "x" }, conflictTarget: "owner" },
      400,
      "operations.1.conflictTarget",
      "invalid_value",
    ],
    [{ table: "accounts", action: "insert" }, 400, "operations.1.data", "required"],
    [{ table: "accounts", action: "insert", data: [] }, 400, "operations.1.data", "invalid_type"],
    [{ table: "accounts", action: "insert", id: "a", data: {} }, 400, "operations.1.id", "unknown_field"],
    [{ table: "accounts", action: "truncate" }, 400, "operations.1.action", "invalid_value"],
    [{ table: "accounts", action: "delete" }, 400, "operations.1.id", "required"],
    [{ table: "hooked", action: "insert", data: { n: 13 } }, 409, "operations.1", "conflict"],
  ];
  for (const [fault, status, field, code] of faults) {
    const answer = await run(platform.service, [before, fault]);
    expect([fault, answer.status, answer.body.data]).toEqual([
      fault,
      status,
      expect.objectContaining({ [field]: expect.objectContaining({ code }) }),
    ]);
  }
  expect((await platform.get("/api/db/shared/tables/entries/never")).status).toBe(404);
});

test("[TB304] a transaction has 1 to 500 operations, and the texts for patterns are bounded together", async () => {
  const insert = { table: "heard", action: "insert", data: {} };
  expect((await run(platform.service, Array(500).fill(insert))).status).toBe(200);
  for (const operations of [[], Array(501).fill(insert), null, {}, "x"]) {
    const answer = await run(platform.service, operations);
    expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, ["operations"]]);
  }
  expect((await platform.service.post(T, { operations: [insert], more: 1 })).status).toBe(400);
  expect((await platform.service.post(`${T}?upsert=true`, { operations: [insert] })).status).toBe(400);
  const long = { table: "entries", action: "insert", data: { code: "a".repeat(8_000) } };
  const tooLong = await run(platform.service, [long, long]);
  expect([tooLong.status, Object.keys(tooLong.body.data ?? {})]).toEqual([400, ["operations.1.data.code"]]);
});

test("[TB305] each operation passes its rule; rights come before the form", async () => {
  const insert = { table: "entries", action: "insert", data: { id: "rights" } };
  // Without a right to change anything, the form is not looked at.
  expect((await platform.post("/api/db/sealed/transaction", { operations: "x" })).status).toBe(401);
  expect((await user.post("/api/db/sealed/transaction", { operations: "x" })).status).toBe(403);
  expect((await run(platform.service, [], "/api/db/none/transaction")).status).toBe(404);
  expect((await run(platform.service, [], "/api/db/shared/one/transaction")).status).toBe(404);
  expect((await run(platform.service, [insert], "/api/db/rooms/transaction")).status).toBe(404);

  const cases: [JsonObject, number][] = [
    [{ table: "closed", action: "insert", data: {} }, 403],
    [{ table: "entries", action: "delete", id: "e" }, 403],
    [{ table: "closed", action: "upsert", data: { id: "e", amount: 1 } }, 403],
    [{ table: "accounts", action: "insert", data: { owner: "somebody" } }, 403],
    [{ table: "slowRule", action: "insert", data: { n: 11 } }, 403],
  ];
  for (const [operation, status] of cases) {
    const answer = await run(user, [insert, operation]);
    const named = { "operations.1": expect.objectContaining({ code: "access_denied" }) };
    expect([operation, answer.status, answer.body.data]).toEqual([operation, status, named]);
  }
  const nobody = await run(platform, [insert]);
  expect([nobody.status, Object.keys(nobody.body.data ?? {})]).toEqual([401, ["operations.0"]]);
  expect((await platform.get("/api/db/shared/tables/entries/rights")).status).toBe(404);
});

test("[TB305] scopes of service keys hold for each table and action", async () => {
  const scoped = platform.withKey(KEYS.scoped);
  const allowed = [
    { table: "heard", action: "insert", data: {} },
    { table: "accounts", action: "update", id: "a", data: {} },
  ];
  expect((await run(scoped, allowed)).status).toBe(200);
  const refused = [
    { table: "heard", action: "delete", id: "x" },
    { table: "accounts", action: "insert", data: { owner: "x" } },
    { table: "entries", action: "insert", data: {} },
    { table: "accounts", action: "upsert", data: { id: "fresh", owner: "x" } },
  ];
  for (const operation of refused) expect((await run(scoped, [...allowed, operation])).status).toBe(403);
  expect((await run(platform.withKey(KEYS.other), "x")).status).toBe(403);
});

test("[TB304] awaited rules and hooks see the records as they are at their operation", async () => {
  const { status, body } = await run(user, [
    { table: "hooked", action: "insert", data: { n: 4 } },
    { table: "slowRule", action: "insert", data: { id: "s", n: 1 } },
    { table: "slowRule", action: "update", id: "s", data: { n: 2 } },
    { table: "slowRule", action: "update", id: "s", data: { n: 3 } },
    { table: "hooked", action: "update", id: "none", data: {} },
  ]);
  expect([status, Object.keys(body.data ?? {})]).toEqual([404, ["operations.4"]]);
  const done = await run(user, [
    { table: "hooked", action: "insert", data: { n: 4 } },
    { table: "slowRule", action: "insert", data: { id: "s", n: 1 } },
    { table: "slowRule", action: "update", id: "s", data: { n: 2 } },
    { table: "slowRule", action: "update", id: "s", data: { n: 3 } },
  ]);
  expect(done.body.results).toMatchObject([{ doubled: 8 }, { n: 1 }, { n: 2 }, { n: 3 }]);
  const skips = await run(user, [
    { table: "slowRule", action: "update", id: "s", data: { n: 4 } },
    { table: "slowRule", action: "update", id: "s", data: { n: 6 } },
  ]);
  expect([skips.status, Object.keys(skips.body.data ?? {})]).toEqual([403, ["operations.1"]]);
});

test("[TB307] a first write that fails leaves no instance behind", async () => {
  const at = (id: string) => `/api/db/rooms/${id}/transaction`;
  const good = { table: "notes", action: "insert", data: { id: "n", n: 1 } };
  const bad = { table: "notes", action: "insert", data: { n: 9 } };
  expect((await run(user, [good, bad], at("fails"))).status).toBe(400);
  expect(
    (await run(user, [good, { table: "notes", action: "update", id: "none", data: {} }], at("fails"))).status,
  ).toBe(404);
  expect((await run(user, [good], at("no-room"))).status).toBe(403);
  expect((await run(user, [good], at("a%2Fb"))).status).toBe(400);
  expect(
    (await run(user, [good, { table: "logs", action: "insert", data: { what: "made" } }], at("made"))).status,
  ).toBe(200);
  expect(await records("logs", "/api/db/rooms/made/tables")).toMatchObject([{ what: "made" }]);
  const files = await Array.fromAsync(new Bun.Glob("**/rooms/*.db").scan(platform.dataDirectory));
  expect(files.map((file) => file.split("/").at(-1))).toEqual(["made.db"]);
});

test("[TB160] /swagger/json has the transactions of each namespace, typed by its tables", async () => {
  const { body } = await platform.service.get<{ paths: Record<string, { post?: JsonObject }> }>("/swagger/json");
  expect(body.paths["/api/db/{namespace}/transaction"]?.post).toBeDefined();
  expect(body.paths["/api/db/{namespace}/{instance}/transaction"]?.post).toBeDefined();
});
