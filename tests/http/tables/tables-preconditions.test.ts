import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const UPDATER = "key-of-updater-0123456789-abcdefghijklm";
const CONFIG = `{
  serviceKeys: { updater: { key: "${UPDATER}", scopes: ["db:shared:docs:update"] } },
  databases: {
    shared: { tables: {
      docs: { schema: { text: { type: "text" }, version: { type: "integer", default: 1 }, meta: { type: "json" }, owner: { type: "string" } },
        access: { read: true, insert: true, update: true, delete: true } },
      filtered: { schema: { owner: { type: "string" }, n: { type: "integer" } },
        access: { read: (auth) => [["owner", "==", auth?.id ?? ""]], insert: true, update: (_auth, record) => record.n < 5, delete: (_auth, record) => record.n < 5, upsert: "matching" } },
      judged: { schema: { owner: { type: "string" }, n: { type: "integer" }, text: { type: "text" } },
        access: { read: async (auth, record) => record.owner === auth?.id, insert: true, update: true, delete: true, upsert: "either" } },
      blind: { schema: { n: { type: "integer" } }, access: { insert: true, update: true, delete: true } },
      parents: { access: { read: true } },
      children: { schema: { parent: { type: "string", references: { table: "parents", onDelete: "cascade" } } } },
    } },
    rooms: { instance: true, access: { open: true }, tables: { notes: { access: { read: true, update: true, delete: true } } } },
  },
}`;
const P = "/api/db/shared/tables";

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
  const { service } = platform;
  await service.post(`${P}/docs`, { id: "d", text: "one", meta: { tags: ["a"] } });
  for (const [id, owner] of [
    ["mine", user.id],
    ["theirs", "somebody"],
  ] as const) {
    await service.post(`${P}/filtered`, { id, owner, n: 1 });
    await service.post(`${P}/judged`, { id, owner, n: 1 });
  }
  await service.post(`${P}/filtered`, { id: "full", owner: user.id, n: 9 });
  await service.post(`${P}/blind`, { id: "b", n: 1 });
});
afterAll(() => platform.stop());

type Client = Pick<TestPlatform, "patch" | "delete" | "post">;
const conditional = (path: string, condition: JsonValue | string) =>
  `${path}?if=${encodeURIComponent(typeof condition === "string" ? condition : JSON.stringify(condition))}`;
const patch = (client: Client, path: string, condition: JsonValue | string, data: JsonObject = {}) =>
  client.patch<JsonObject & ErrorAnswer>(conditional(`${P}/${path}`, condition), data);
const transact = (client: Client, operation: JsonObject) =>
  client.post<ErrorAnswer>("/api/db/shared/transaction", { operations: [operation] });

test("[TB301] a change whose condition the stored record does not meet is 412, and nothing is written", async () => {
  const changed = await patch(user, "docs/d", [["version", "==", 1]], { text: "two", version: 2 });
  expect([changed.status, changed.body]).toEqual([200, expect.objectContaining({ text: "two", version: 2 })]);
  const late = await patch(user, "docs/d", [["version", "==", 1]], { text: "three", version: 2 });
  expect(late).toMatchObject({ status: 412, body: { code: 412, message: expect.any(String) } });
  expect(Object.keys(late.body)).toEqual(["code", "message"]);
  const removed = await user.delete(conditional(`${P}/docs/d`, [["version", "==", 1]]));
  expect(removed.status).toBe(412);
  expect((await user.get(`${P}/docs/d`)).body).toMatchObject({ text: "two", version: 2 });
  for (const condition of [
    [
      ["text", "contains", "w"],
      ["version", "in", [2, 3]],
    ],
    [["meta.tags", "contains", "a"]],
    [["text", "startsWith", "t"]],
    [["owner", "==", null]],
    [],
    "",
  ]) {
    expect((await patch(user, "docs/d", condition)).status).toBe(200);
  }
});

test("[TB301] of parallel changes with the same condition one is written", async () => {
  await platform.service.post(`${P}/docs`, { id: "race", version: 1 });
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      patch(user, "docs/race", [["version", "==", 1]], { version: 2, text: `t${n}` }),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(412)]);
});

test("[TB301] operations of a transaction have conditions, and an upsert has one for a stored record", async () => {
  await platform.service.post(`${P}/docs`, { id: "t", version: 1 });
  const refused = await transact(user, {
    table: "docs",
    action: "update",
    id: "t",
    data: {},
    if: [["version", "==", 7]],
  });
  expect([refused.status, refused.body.data]).toEqual([
    412,
    { "operations.0": { code: "condition_failed", message: expect.any(String) } },
  ]);
  const upsert = (id: string, condition: JsonValue) =>
    transact(user, { table: "docs", action: "upsert", data: { id, version: 2 }, if: condition });
  expect((await upsert("t", [["version", "==", 7]])).status).toBe(412);
  expect((await upsert("t", [["version", "==", 1]])).status).toBe(200);
  expect((await upsert("new", [["version", "==", 7]])).status).toBe(200);
  expect((await transact(user, { table: "docs", action: "delete", id: "t", if: [["version", "==", 1]] })).status).toBe(
    412,
  );
  expect((await transact(user, { table: "docs", action: "delete", id: "t", if: [["version", "==", 2]] })).status).toBe(
    200,
  );
  expect((await transact(user, { table: "docs", action: "insert", data: {}, if: [] })).body.data).toHaveProperty([
    "operations.0.if",
  ]);
  // An operation sees what the ones before it did.
  const both = await user.post<ErrorAnswer>("/api/db/shared/transaction", {
    operations: [
      { table: "docs", action: "insert", data: { id: "seen", version: 1 } },
      { table: "docs", action: "update", id: "seen", data: { version: 2 }, if: [["version", "==", 1]] },
      { table: "docs", action: "update", id: "seen", data: { version: 3 }, if: [["version", "==", 1]] },
    ],
  });
  expect([both.status, Object.keys(both.body.data ?? {})]).toEqual([412, ["operations.2"]]);
  expect((await user.get(`${P}/docs/seen`)).status).toBe(404);
});

test("[TB302] 404 for what may not be read, 400 for the form, 403 for the rule, then 412", async () => {
  const bad = [["nothing", "==", 1]];
  const fails = [["n", "==", 77]];
  for (const change of [
    (path: string, condition: JsonValue) => patch(user, path, condition, { n: 2 }),
    (path: string, condition: JsonValue) => user.delete<ErrorAnswer>(conditional(`${P}/${path}`, condition)),
  ]) {
    const statuses = async (path: string) => [(await change(path, bad)).status, (await change(path, fails)).status];
    expect(await statuses("filtered/none")).toEqual([404, 404]);
    expect(await statuses("filtered/theirs")).toEqual([404, 404]);
    expect(await statuses("filtered/full")).toEqual([400, 403]);
    expect(await statuses("filtered/mine")).toEqual([400, 412]);
  }
  const form = await patch(user, "filtered/mine", bad);
  expect(Object.keys(form.body.data ?? {})).toEqual(["if.0"]);
  for (const condition of [
    "x",
    '{"a":1}',
    '[["n","~",1]]',
    '[["n","==","1"]]',
    JSON.stringify(Array(101).fill(["n", "==", 1])),
  ]) {
    expect([condition, (await patch(user, "filtered/mine", condition)).status]).toEqual([condition, 400]);
  }
  const named = await transact(user, { table: "filtered", action: "update", id: "mine", data: {}, if: bad });
  expect([named.status, Object.keys(named.body.data ?? {})]).toEqual([400, ["operations.0.if.0"]]);
  const missing = await user.patch(conditional("/api/db/rooms/none/tables/notes/x", bad), {});
  expect(missing.status).toBe(404);
  const unknown = await user.patch(`${P}/docs/d?iff=[]`, {});
  expect(unknown.status).toBe(400);
});

test("[TB302] a caller that may not read the record has no condition", async () => {
  for (const condition of [[["n", "==", 1]], [["n", "==", 2]]]) {
    expect((await patch(user, "judged/theirs", condition)).status).toBe(403);
    expect((await patch(user, "blind/b", condition)).status).toBe(403);
    expect((await patch(platform, "blind/b", condition)).status).toBe(401);
    expect((await user.delete(conditional(`${P}/blind/b`, condition))).status).toBe(403);
    for (const table of ["judged", "filtered"]) {
      const upsert = { table, action: "upsert", data: { id: "theirs", n: 3 }, if: condition };
      expect([table, (await transact(user, upsert)).status]).toEqual([table, 403]);
    }
    expect((await transact(user, { table: "blind", action: "delete", id: "b", if: condition })).status).toBe(403);
  }
  expect((await user.patch(`${P}/judged/theirs`, { n: 1 })).status).toBe(200);
  expect((await patch(user, "judged/mine", [["n", "==", 1]], { n: 2 })).status).toBe(200);
  expect((await patch(user, "judged/mine", [["n", "==", 1]], { n: 2 })).status).toBe(412);
  expect((await patch(platform.withKey(UPDATER), "docs/d", [["version", "==", 1]])).status).toBe(403);
  expect((await platform.withKey(UPDATER).patch(`${P}/docs/d`, {})).status).toBe(200);
});

test("[TB303] conditions that would compare too much are 413, and nothing is written", async () => {
  const text = "ab".repeat(400_000);
  await platform.service.post(`${P}/docs`, { id: "long", text, meta: Array(100_000).fill(1), version: 1 });
  const needle = `${"ab".repeat(200)}ba${"ab".repeat(200)}`;
  const search = (count: number) => Array(count).fill(["text", "contains", needle]);
  const object = { nested: true };
  const updated = (condition: JsonValue) =>
    transact(user, { table: "docs", action: "update", id: "long", data: { version: 2 }, if: condition });
  expect((await updated(search(50))).status).toBe(413);
  expect((await updated([["meta", "in", Array(1_000).fill(object)]])).status).toBe(413);
  expect((await updated(Array(50).fill(["meta", "==", object]))).status).toBe(413);
  expect(
    (
      await updated([
        ["text", "contains", "ab"],
        ["meta", "contains", 2],
      ])
    ).status,
  ).toBe(412);
  expect((await user.get<JsonObject>(`${P}/docs/long?fields=version`)).body).toMatchObject({ version: 1 });
  const values = Array.from({ length: 11 }, () => ({
    table: "docs",
    action: "update",
    id: "long",
    data: {},
    if: [["version", "in", Array(1_000).fill(1)]],
  }));
  const many = await user.post<ErrorAnswer>("/api/db/shared/transaction", { operations: values });
  expect([many.status, Object.values(many.body.data ?? {}).map(({ code }) => code)]).toEqual([400, ["too_long"]]);
});

test("[TB303] batch-by-filter ends where its conditions have compared enough, and is 413 where one record takes more", async () => {
  const changed = async (condition: JsonValue, count: number, version: number) => {
    const filter = [["version", "==", version], ...Array(count).fill(condition)];
    const body = { action: "update", filter, data: { version: version + 1 } };
    const answer = await user.post<{ processed: number } & ErrorAnswer>(`${P}/docs/batch-by-filter`, body);
    return answer.status === 200 ? answer.body.processed : answer.status;
  };
  const all = async (condition: JsonValue, count: number, version: number) => {
    const ended: number[] = [];
    do ended.push(await changed(condition, count, version));
    while (ended.at(-1) !== 0);
    return ended;
  };
  const text = "ab".repeat(400_000);
  for (let index = 0; index < 6; index++) await user.post(`${P}/docs`, { id: `long${index}`, text, version: 100 });
  expect(await all(["text", "contains", "ba"], 3, 100)).toEqual([4, 2, 0]);
  expect(await changed(["text", "contains", "ba"], 12, 101)).toBe(413);
  expect(await all(["text", "contains", "ba"], 1, 101)).toEqual([6, 0]);
  // Where the read rule sees each record, the conditions are evaluated before any is changed.
  await user.post(`${P}/judged`, { id: "long", owner: user.id, text });
  const filter = [...Array(12).fill(["text", "contains", "ba"]), ["text", "contains", "none"]];
  expect((await user.post(`${P}/judged/batch-by-filter`, { action: "delete", filter })).status).toBe(413);
  const short = Array.from({ length: 300 }, () => ({ text: "x", version: 200 }));
  expect((await user.post(`${P}/docs/batch`, { inserts: short })).status).toBe(200);
  const listed = ["text", "in", [...Array.from({ length: 999 }, (_, index) => `${index}`), "x"]];
  expect(await all(listed, 1, 200)).toEqual([300, 0]);
  const ended = await all(listed, 49, 201);
  expect(ended.length).toBeGreaterThan(3);
  expect(ended.reduce((sum, processed) => sum + processed)).toBe(300);
});

test("[TB301] a deletion in steps keeps its condition", async () => {
  const { service } = platform;
  await service.post(`${P}/parents`, { id: "p" });
  for (let from = 0; from < 5_500; from += 500) {
    const inserts = Array.from({ length: 500 }, () => ({ parent: "p" }));
    expect((await service.post(`${P}/children/batch`, { inserts })).status).toBe(200);
  }
  expect((await service.delete(conditional(`${P}/parents/p`, [["id", "==", "q"]]))).status).toBe(412);
  expect((await service.get(`${P}/children/count`)).body).toEqual({ total: 5_500 });
  expect((await service.delete(conditional(`${P}/parents/p`, [["id", "==", "p"]]))).status).toBe(200);
  expect((await service.get(`${P}/children/count`)).body).toEqual({ total: 0 });
});
