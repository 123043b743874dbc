import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const P = "/api/db/shared/tables/items";

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      items: { schema: { name: { type: "string", required: true }, slug: { type: "string", unique: true }, n: { type: "integer", max: 1000 } } },
      guarded: {
        schema: { n: { type: "integer" } },
        access: { read: true, update: (_auth, record) => record.n % 2 === 0, delete: true, insert: true },
        hooks: { beforeDelete(_auth, record) { if (record.n > 90) throw new Refusal("too big to go"); } },
      },
      numbered: { schema: { code: { type: "integer", unique: true }, live: { type: "boolean" } } },
      seen: { schema: { owner: { type: "string" }, n: { type: "integer" } },
        access: { read: async (_auth, record) => record.owner === "pub", insert: true, update: true, delete: true } },
    } } } }`,
  });
});
afterAll(() => platform.stop());

const upsert = (body: JsonObject, query: Record<string, string> = {}) =>
  platform.service.post<JsonObject & ErrorAnswer>(P, body, { query: { upsert: "true", ...query } });
const batch = (body: JsonObject, query: Record<string, string> = {}) =>
  platform.service.post<{ inserted: JsonObject[]; updated: JsonObject[]; deleted: JsonObject[] } & ErrorAnswer>(
    `${P}/batch`,
    body,
    { query },
  );

test("[TB33] upsert creates with 201 and updates with 200", async () => {
  const first = await upsert({ id: "u1", name: "One", n: 1 });
  expect(first.status).toBe(201);
  const second = await upsert({ id: "u1", name: "Two", createdAt: "2001-01-01T00:00:00Z" });
  expect(second.status).toBe(200);
  expect(second.body).toMatchObject({ id: "u1", name: "Two", n: 1, createdAt: String(first.body["createdAt"]) });
  const parallel = await Promise.all(Array.from({ length: 20 }, (_, n) => upsert({ id: "race", name: "Race", n })));
  expect(parallel.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
  expect((await upsert({ id: "u2" })).status).toBe(400);
  expect((await upsert({ id: "u1", n: { $op: "increment", value: 1 } })).status).toBe(400);
  expect((await platform.service.post(`${P}?upsert=maybe`, { id: "u1", name: "x" })).status).toBe(400);
});

test("[TB34] conflictTarget is id or a unique field", async () => {
  const first = await upsert({ slug: "s-1", name: "One" }, { conflictTarget: "slug" });
  expect(first.status).toBe(201);
  const second = await upsert({ slug: "s-1", name: "Two", id: "other" }, { conflictTarget: "slug" });
  expect(second).toMatchObject({ status: 200, body: { id: String(first.body["id"]), name: "Two" } });
  for (const conflictTarget of ["name", "nope", "n; DROP TABLE items", ""]) {
    expect((await upsert({ id: "x", name: "X" }, { conflictTarget })).status).toBe(400);
  }
  const missing = await upsert({ name: "X" });
  expect(missing.status).toBe(400);
  expect(missing.body.data?.["id"]?.code).toBe("required");
  expect((await upsert({ name: "X" }, { conflictTarget: "slug" })).body.data?.["slug"]?.code).toBe("required");
});

test("[TB34] the value of the conflict target has the field's type", async () => {
  await upsert({ id: "5", name: "five" });
  await upsert({ id: "true", name: "true" });
  for (const id of [5, true, ["5"], [], ["5", "6"], { x: "5" }, { $x: 1 }] as const) {
    const one = await upsert({ id: id as never, name: "changed" });
    expect([id, one.status, one.body.data?.["id"]?.code]).toEqual([id, 400, "invalid_type"]);
    const many = await batch({ inserts: [{ id: id as never, name: "changed" }] }, { upsert: "true" });
    expect([id, many.status, many.body.data?.["inserts.0.id"]?.code]).toEqual([id, 400, "invalid_type"]);
  }
  expect((await upsert({ slug: ["s-1"], name: "X" }, { conflictTarget: "slug" })).body.data?.["slug"]?.code).toBe(
    "invalid_type",
  );
  const N = "/api/db/shared/tables/numbered";
  for (const code of ["1", 1.5, true, [1]]) {
    const answer = await platform.service.post<ErrorAnswer>(`${N}?upsert=true&conflictTarget=code`, { code });
    expect([code, answer.status, answer.body.data?.["code"]?.code]).toEqual([code, 400, "invalid_type"]);
  }
  expect((await platform.service.get(`${P}/5`)).body["name"]).toBe("five");
});

test("[TB39] batch-by-filter skips records that the read rule hides, up to a bound", async () => {
  const S = "/api/db/shared/tables/seen";
  const fill = async (prefix: string, owner: string, count: number) => {
    for (let start = 0; start < count; start += 500) {
      const inserts = Array.from({ length: Math.min(500, count - start) }, (_, n) => ({
        id: `${prefix}${String(start + n).padStart(6, "0")}`,
        owner,
        n: 1,
      }));
      expect((await platform.service.post(`${S}/batch`, { inserts })).status).toBe(200);
    }
  };
  await fill("a", "private", 1200);
  await fill("b", "pub", 510);
  const update = (filter: JsonObject[string]) =>
    platform.post<ErrorAnswer>(`${S}/batch-by-filter`, { action: "update", filter, data: { n: 2 } });
  expect((await update([["n", "==", 1]])).body).toMatchObject({ processed: 500, succeeded: 500 });
  expect((await update([["n", "==", 1]])).body).toMatchObject({ processed: 10, succeeded: 10 });
  expect((await update([["n", "==", 1]])).body).toMatchObject({ processed: 0, succeeded: 0 });
  await fill("c", "private", 9000);
  const refused = await update([["n", "==", 1]]);
  expect(refused).toMatchObject({ status: 400, body: { message: expect.stringContaining("narrow the filter") } });
  expect((await update([["n", "in", [1, 2]]])).body).toMatchObject({ processed: 500, succeeded: 500 });
});

test("[TB37] unknown members are refused", async () => {
  await upsert({ id: "m1", name: "One", n: 1 });
  const update = await batch({ updates: [{ id: "m1", data: { n: 2 }, name: "dropped" }] });
  expect([update.status, Object.keys(update.body.data ?? {})]).toEqual([400, ["updates.0.name"]]);
  const deletion = await platform.service.post<ErrorAnswer>(`${P}/batch-by-filter`, {
    action: "delete",
    filter: [["id", "==", "m1"]],
    data: { n: 2 },
  });
  expect([deletion.status, deletion.body.data?.["data"]?.code]).toEqual([400, "unknown_field"]);
  expect((await platform.service.get(`${P}/m1`)).body["n"]).toBe(1);
});

test("[TB36] a batch is all or nothing, and names what failed", async () => {
  const { status, body } = await batch({
    inserts: [{ id: "b1", name: "B1" }, { id: "b2", name: "B2" }, { name: "B3" }],
    updates: [{ id: "b2", data: { name: "changed", n: { $op: "increment", value: 4 } } }],
    deletes: ["b1"],
  });
  expect(status).toBe(200);
  expect(body.inserted.map((one) => one["name"])).toEqual(["B1", "B2", "B3"]);
  expect(body.updated).toMatchObject([{ id: "b2", name: "changed", n: 4 }]);
  expect(body.deleted).toEqual([{ id: "b1" }]);

  const count = async () => (await platform.service.get<{ total: number }>(`${P}/count`)).body.total;
  const before = await count();
  const failures: [JsonObject, number, string][] = [
    [{ inserts: [{ name: "ok" }, { name: 5 }] }, 400, "inserts.1.name"],
    [{ inserts: [{ name: "ok" }], updates: [{ id: "b2", data: { n: 5000 } }] }, 400, "updates.0.n"],
    [{ inserts: [{ name: "ok" }], updates: [{ id: "b2", data: { nope: 1 } }] }, 400, "updates.0.nope"],
    [{ inserts: [{ name: "ok" }], deletes: ["b2", "nobody"] }, 404, "deletes.1"],
    [{ inserts: [{ name: "ok" }], updates: [{ id: "nobody", data: {} }] }, 404, "updates.0"],
    [
      {
        inserts: [
          { id: "b9", name: "ok" },
          { id: "b9", name: "again" },
        ],
      },
      409,
      "inserts.1.id",
    ],
    [{ inserts: [{ name: "ok" }, "nope"] }, 400, "inserts.1"],
    [{ updates: [{ id: "b2" }] }, 400, "updates.0.data"],
    [{ deletes: [5] }, 400, "deletes.0"],
    [{ inserts: {} }, 400, "inserts"],
    [{ insert: [] }, 400, "insert"],
  ];
  for (const [request, wanted, place] of failures) {
    const answer = await batch(request);
    expect(answer.status).toBe(wanted);
    expect(Object.keys(answer.body.data ?? {})).toContain(place);
    expect(await count()).toBe(before);
  }
  expect((await platform.service.get(`${P}/b2`)).status).toBe(200);
});

test("[TB37] a batch has at most 500 operations", async () => {
  const inserts = Array.from({ length: 500 }, (_, index) => ({ name: `many ${index}` }));
  expect((await batch({ inserts })).body.inserted.length).toBe(500);
  expect((await batch({ inserts, deletes: ["b2"] })).status).toBe(400);
  expect((await batch({})).body).toMatchObject({ inserted: [], updated: [], deleted: [] });
});

test("[TB38] a batch upserts", async () => {
  await upsert({ id: "ub", name: "Before", n: 7 });
  const { status, body } = await batch(
    { inserts: [{ id: "ub", name: "After" }, { id: "ub2", name: "New" }, { name: "No id" }] },
    { upsert: "true" },
  );
  expect(status).toBe(200);
  expect(body.inserted).toMatchObject([{ id: "ub", name: "After", n: 7 }, { id: "ub2" }, { name: "No id" }]);
  expect(
    (
      await batch(
        {
          inserts: [
            { id: "ub", n: 1 },
            { id: "nobody", n: 1 },
          ],
        },
        { upsert: "true" },
      )
    ).status,
  ).toBe(400);
  expect((await platform.service.get(`${P}/ub`)).body["n"]).toBe(7);
});

test("[TB39] batch-by-filter changes what matches", async () => {
  const byFilter = (body: JsonObject) =>
    platform.service.post<{ processed: number; succeeded: number } & ErrorAnswer>(`${P}/batch-by-filter`, body);
  await batch({
    inserts: Array.from({ length: 300 }, (_, n) => ({ id: `f${String(n).padStart(3, "0")}`, name: "bulk", n })),
  });
  await batch({
    inserts: Array.from({ length: 300 }, (_, n) => ({ id: `g${String(n).padStart(3, "0")}`, name: "bulk", n })),
  });
  expect(
    (
      await byFilter({
        action: "update",
        filter: [
          ["name", "==", "bulk"],
          ["n", "<", 10],
        ],
        data: { n: { $op: "increment", value: 500 } },
      })
    ).body,
  ).toEqual({ processed: 20, succeeded: 20 } as never);
  expect((await byFilter({ action: "delete", filter: [["name", "==", "bulk"]] })).body).toEqual({
    processed: 500,
    succeeded: 500,
  } as never);
  const rest = await platform.service.get<ListAnswer>(P, { query: { filter: '[["name","==","bulk"]]' } });
  expect(rest.body.total).toBe(100);
  expect(rest.body.items[0]?.["id"]).toBe("g200");
  expect(
    (
      await byFilter({
        action: "delete",
        orFilter: [
          ["n", "==", 250],
          ["n", "==", 251],
        ],
        filter: [["name", "==", "bulk"]],
      })
    ).body,
  ).toMatchObject({ processed: 2 });
  for (const body of [
    { action: "delete" },
    { action: "delete", filter: [] },
    { action: "delete", filter: [], orFilter: [] },
    { filter: [["n", "==", 1]] },
    { action: "drop", filter: [["n", "==", 1]] },
    { action: "update", filter: [["n", "==", 1]] },
    { action: "update", filter: [["n", "==", 1]], data: [] },
    { action: "delete", filter: "all" },
    { action: "delete", orFilter: Array(6).fill(["n", "==", 1]) },
  ]) {
    expect((await byFilter(body as JsonObject)).status).toBe(400);
  }
});

test("[TB40] batch-by-filter skips what a rule or hook refuses, and fails as a whole for invalid values", async () => {
  const G = "/api/db/shared/tables/guarded";
  await platform.service.post(`${G}/batch`, {
    inserts: Array.from({ length: 10 }, (_, n) => ({ id: `r${n}`, n: n + 85 })),
  });
  const update = await platform.post(`${G}/batch-by-filter`, {
    action: "update",
    filter: [["n", ">=", 85]],
    data: { n: { $op: "increment", value: 2 } },
  });
  expect(update.body).toEqual({ processed: 10, succeeded: 5 });
  const deletion = await platform.post(`${G}/batch-by-filter`, { action: "delete", filter: [["n", ">=", 0]] });
  expect(deletion.body).toEqual({ processed: 10, succeeded: 5 });
  const left = await platform.get<ListAnswer>(G);
  expect(left.body.items.every((one) => Number(one["n"]) > 90)).toBe(true);
  const broken = await platform.service.post<ErrorAnswer>(`${P}/batch-by-filter`, {
    action: "update",
    filter: [["name", "contains", "many"]],
    data: { n: 5000 },
  });
  expect(broken.status).toBe(400);
});
