import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const P = path("things");

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ server: { maxBodySize: 100000 }, databases: { shared: { tables: {
      things: {
        schema: {
          title: { type: "string", required: true, min: 2, max: 10 }, body: { type: "text", default: "none" },
          count: { type: "integer", min: 0, max: 100 }, price: { type: "number" }, live: { type: "boolean", default: true },
          due: { type: "datetime" }, meta: { type: "json" }, slug: { type: "string", unique: true, pattern: "^[a-z-]+$" },
          kind: { type: "string", enum: ["a", "b"] }, touched: { type: "datetime", onUpdate: "now" },
          total: { type: "number", check: "total IS NULL OR total >= 0" },
          subtotal: { type: "number", check: "subtotal IS NULL OR subtotal >= 0" }, tax: { type: "number", check: " tax  IS NULL\\n OR tax < 100 " },
        },
        indexes: [{ fields: ["kind", "count"], unique: true }],
        access: { read: true },
      },
      parents: { schema: { name: { type: "string", unique: true } } },
      strict: { schema: { parent: { type: "string", references: "parents" } } },
      loose: { schema: { parent: { type: "string", references: { table: "parents", onDelete: "set null" } } } },
      owned: { schema: { parent: { type: "string", references: { table: "parents", column: "name", onDelete: "cascade" } } } },
      leaves: { schema: { owner: { type: "string", references: { table: "owned", onDelete: "cascade" } } } },
      free: { access: { read: true } },
      open: { schema: { n: { type: "integer" } }, access: { read: true, insert: true, update: true } },
      openFree: { access: { read: true, insert: true, update: true } },
      bare: { schema: { n: { type: "integer" }, createdAt: false, updatedAt: false } },
    } } } }`,
  });
});
afterAll(() => platform.stop());

/** Resolves when the clock has passed this time, so that a change gets a later one. */
async function passed(time: unknown): Promise<void> {
  while (Date.now() <= Date.parse(String(time))) await Bun.sleep(1);
}

const insert = async (table: string, body: JsonObject) => platform.service.post(path(table), body);
const problem = async (body: JsonObject, id?: string) => {
  const { status, body: answer } =
    id === undefined
      ? await platform.service.post<ErrorAnswer>(P, body)
      : await platform.service.patch<ErrorAnswer>(`${P}/${id}`, body);
  expect(answer.code).toBe(status);
  return {
    status,
    codes: Object.fromEntries(Object.entries(answer.data ?? {}).map(([field, { code }]) => [field, code])),
  };
};

test("[TB19] missing records, tables and namespaces are 404", async () => {
  for (const missing of [
    `${P}/nope`,
    path("nope"),
    "/api/db/nope/tables/things",
    "/api/db/shared/i1/tables/things",
    `${path("nope")}/x`,
  ]) {
    const answer = await platform.service.get<ErrorAnswer>(missing);
    expect(answer.status).toBe(404);
    expect(answer.body.message).toBeString();
  }
});

test("[TB20] an insert answers the whole record with its defaults", async () => {
  const { status, body } = await insert("things", { title: "First" });
  expect(status).toBe(201);
  expect(body["id"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(body).toMatchObject({
    title: "First",
    body: "none",
    count: null,
    price: null,
    live: true,
    meta: null,
    slug: null,
  });
  expect(Math.abs(Date.parse(String(body["createdAt"])) - Date.now())).toBeLessThan(60_000);
  expect(body["updatedAt"]).toBe(body["createdAt"] ?? "");
  expect(Object.keys(body)[0]).toBe("id");
  expect((await platform.get(`${P}/${String(body["id"])}`)).body).toEqual(body);
  const own = await insert("things", {
    title: "Own",
    id: "mine",
    createdAt: "2001-02-03T04:05:06Z",
    updatedAt: "2002-02-03T04:05:06Z",
  });
  expect(own.body).toMatchObject({
    id: "mine",
    createdAt: "2001-02-03T04:05:06.000Z",
    updatedAt: "2002-02-03T04:05:06.000Z",
  });
  expect((await insert("bare", { n: 1 })).body).toEqual({ id: expect.any(String), n: 1 });
});

test("[TB21] every field at fault is named with its code", async () => {
  const { status, codes } = await problem({
    title: "x",
    body: 5,
    count: 1.5,
    price: "1",
    live: 1,
    due: "yesterday",
    slug: "No!",
    kind: "c",
    nope: 1,
  });
  expect(status).toBe(400);
  expect(codes).toEqual({
    title: "too_short",
    body: "invalid_type",
    count: "invalid_type",
    price: "invalid_type",
    live: "invalid_type",
    due: "invalid_value",
    slug: "pattern_mismatch",
    kind: "invalid_value",
    nope: "unknown_field",
  });
  expect(await problem({})).toEqual({ status: 400, codes: { title: "required" } });
  expect(await problem({ title: null })).toEqual({ status: 400, codes: { title: "required" } });
  expect(await problem({ title: "ok ok", count: -1 })).toEqual({ status: 400, codes: { count: "too_small" } });
  expect(await problem({ title: "ok ok", count: 101 })).toEqual({ status: 400, codes: { count: "too_large" } });
  expect(await problem({ title: "12345678901" })).toEqual({ status: 400, codes: { title: "too_long" } });
  expect((await insert("things", { title: "👍👍👍👍👍👍👍👍👍👍" })).status).toBe(201);
  expect(await problem({ title: "ok", due: "2024-02-30T00:00:00Z" })).toEqual({
    status: 400,
    codes: { due: "invalid_value" },
  });
  expect(
    (
      await platform.service.fetch(P, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"title":"ab\\ud800"}',
      })
    ).status,
  ).toBe(400);
});

test("[TB22] ids have a form", async () => {
  for (const id of [
    "",
    "a/b",
    "a\u0000b",
    "a\nb",
    "a\u0085b",
    ".",
    "..",
    "count",
    "search",
    "batch",
    "batch-by-filter",
    "x".repeat(257),
    5,
    null,
    {},
  ]) {
    const answer = await problem({ title: "ok ok", id: id as never });
    if (id === null) continue;
    expect(answer).toMatchObject({ status: 400, codes: { id: expect.any(String) } });
  }
  for (const id of ["x".repeat(256), "ünïcödé 😀", "a%2Fb", "a?b#c"]) {
    expect((await insert("things", { title: "ok ok", id })).status).toBe(201);
    expect((await platform.get(`${P}/${encodeURIComponent(id)}`)).body).toMatchObject({ id });
  }
  expect((await platform.get(`${P}/%E0%A4%A`)).status).toBe(400);
});

test("[TB23] duplicate values are 409", async () => {
  await insert("things", { id: "dup", title: "One", slug: "taken", kind: "a", count: 50 });
  expect(await problem({ id: "dup", title: "Two" })).toEqual({ status: 409, codes: { id: "not_unique" } });
  expect(await problem({ title: "Two", slug: "taken" })).toEqual({ status: 409, codes: { slug: "not_unique" } });
  expect(await problem({ title: "Two", kind: "a", count: 50 })).toEqual({
    status: 409,
    codes: { kind: "not_unique", count: "not_unique" },
  });
  await insert("things", { id: "other", title: "Other" });
  expect(await problem({ slug: "taken" }, "other")).toEqual({ status: 409, codes: { slug: "not_unique" } });
});

test("[TB24] values are answered as they were sent", async () => {
  const record = {
    title: "Types",
    body: "line\nbreak 'quote' \"double\" 😀 \u2028",
    count: 42,
    price: 0.1 + 0.2,
    live: false,
    due: "2024-05-06T05:08:09.123Z",
    meta: { a: [1, "2", null, true, { b: 1.5e300 }], "": "empty", "x.y": 0 },
  };
  const { body } = await insert("things", record);
  expect(body).toMatchObject(record);
  expect((await platform.get(`${P}/${String(body["id"])}`)).body).toMatchObject(record);
  for (const meta of [null, 0, false, "text", [], {}, [[[]]], -1e-7]) {
    const answer = await insert("things", { title: "Json", meta });
    expect((await platform.get(`${P}/${String(answer.body["id"])}`)).body["meta"]).toEqual(meta);
  }
  for (const price of [1, -1, 1e21, 5e-324, 2 ** 53, 0.1]) {
    expect((await insert("things", { title: "Price", price })).body["price"]).toBe(price);
  }
});

test("[TB25] PATCH changes the given fields", async () => {
  const { body: before } = await insert("things", { id: "patch", title: "Before", count: 5, slug: "patch-it" });
  await passed(before["updatedAt"]);
  const { status, body } = await platform.service.patch(`${P}/patch`, {
    title: "After",
    id: "evil",
    createdAt: "1999-01-01T00:00:00Z",
    updatedAt: "1999-01-01T00:00:00Z",
    count: null,
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    id: "patch",
    title: "After",
    count: null,
    slug: "patch-it",
    createdAt: String(before["createdAt"]),
  });
  expect(String(body["updatedAt"]) > String(before["updatedAt"])).toBe(true);
  expect((await platform.service.patch(`${P}/patch`, {})).body).toEqual(body);
  expect((await platform.service.patch(`${P}/patch`, body)).status).toBe(200);
  expect(await problem({ title: null }, "patch")).toEqual({ status: 400, codes: { title: "required" } });
  expect(await problem({ nope: 1 }, "patch")).toEqual({ status: 400, codes: { nope: "unknown_field" } });
  expect((await platform.service.patch(`${P}/missing`, { title: "After" })).status).toBe(404);
});

test("[TB21] of very many unknown fields only 100 are named", async () => {
  for (const count of [1, 7, 8, 9, 100, 4_000]) {
    const unknownAs = (value: JsonValue) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`nope${index}`, value]));
    for (const [body, id] of [
      [{ id: `many${count}`, title: "Title", ...unknownAs(1) }, undefined],
      [unknownAs(1), "patch"],
      [unknownAs({ $op: 0 }), "patch"],
    ] as const) {
      const { status, codes } = await problem(body, id);
      expect(status).toBe(400);
      expect(Object.keys(codes).length).toBe(Math.min(count, 100));
      expect(new Set(Object.values(codes))).toEqual(new Set(["unknown_field"]));
    }
    expect((await platform.service.get(`${P}/many${count}`)).status).toBe(404);
  }
});

test("[TB26] increments are atomic, and bounded", async () => {
  await insert("things", { id: "inc", title: "Inc", count: 10 });
  await Promise.all(
    Array.from({ length: 50 }, () => platform.service.patch(`${P}/inc`, { count: { $op: "increment", value: 1 } })),
  );
  expect((await platform.get(`${P}/inc`)).body["count"]).toBe(60);
  const { body } = await platform.service.patch(`${P}/inc`, {
    price: { $op: "increment", value: -2.5 },
    title: "Inc 2",
  });
  expect(body).toMatchObject({ price: -2.5, title: "Inc 2" });
  expect(await problem({ count: { $op: "increment", value: 100 } }, "inc")).toEqual({
    status: 400,
    codes: { count: "too_large" },
  });
  expect(await problem({ title: { $op: "increment", value: 1 } }, "inc")).toEqual({
    status: 400,
    codes: { title: "invalid_type" },
  });
  expect(await problem({ count: { $op: "increment", value: "1" } }, "inc")).toEqual({
    status: 400,
    codes: { count: "invalid_type" },
  });
  expect(await problem({ count: { $op: "increment", value: 0.5 } }, "inc")).toEqual({
    status: 400,
    codes: { count: "invalid_type" },
  });
});

test("[TB27] deleteField clears; other operators, and any in an insert, are refused", async () => {
  await insert("things", { id: "del", title: "Del", price: 5, meta: { a: 1 } });
  const { body } = await platform.service.patch(`${P}/del`, {
    price: { $op: "deleteField" },
    meta: { $op: "deleteField" },
  });
  expect(body).toMatchObject({ price: null, meta: null });
  expect(await problem({ title: { $op: "deleteField" } }, "del")).toEqual({
    status: 400,
    codes: { title: "required" },
  });
  expect(await problem({ price: { $op: "multiply", value: 2 } }, "del")).toEqual({
    status: 400,
    codes: { price: "invalid_value" },
  });
  expect(await problem({ title: "Op", count: { $op: "increment", value: 1 } })).toEqual({
    status: 400,
    codes: { count: "invalid_value" },
  });
});

test("[TB27] an unknown member of an operator is refused", async () => {
  await insert("things", { id: "op", title: "Ops", count: 1 });
  for (const count of [
    { $op: "increment", value: 1, by: 2 },
    { $op: "deleteField", value: 1 },
  ]) {
    expect(await problem({ count: count as never }, "op")).toEqual({ status: 400, codes: { count: "unknown_field" } });
  }
});

test("[TB28] DELETE removes a record, and is 404 for a missing one", async () => {
  await insert("things", { id: "gone", title: "Gone" });
  expect(await platform.service.delete(`${P}/gone`)).toMatchObject({ status: 200, body: { ok: true } });
  expect((await platform.service.delete(`${P}/gone`)).status).toBe(404);
  expect((await platform.get(`${P}/gone`)).status).toBe(404);
});

test("[TB29] references are enforced, and deletes follow onDelete", async () => {
  for (const id of ["p1", "p2", "p3"]) await insert("parents", { id, name: `name-${id}` });
  const wrong = await platform.service.post<ErrorAnswer>(path("strict"), { parent: "nobody" });
  expect(wrong.status).toBe(400);
  expect(wrong.body.data?.["parent"]?.code).toBe("unknown_reference");
  await insert("strict", { id: "s1", parent: "p1" });
  expect((await platform.service.patch(`${path("strict")}/s1`, { parent: "nobody" })).status).toBe(400);
  expect((await platform.service.delete(`${path("parents")}/p1`)).status).toBe(409);
  await insert("loose", { id: "l1", parent: "p2" });
  await insert("owned", { id: "o1", parent: "name-p2" });
  await insert("leaves", { id: "f1", owner: "o1" });
  expect((await platform.service.delete(`${path("parents")}/p2`)).status).toBe(200);
  expect((await platform.service.get(`${path("loose")}/l1`)).body["parent"]).toBeNull();
  expect((await platform.service.get(`${path("owned")}/o1`)).status).toBe(404);
  expect((await platform.service.get(`${path("leaves")}/f1`)).status).toBe(404);
  await insert("owned", { id: "o3", parent: "name-p3" });
  expect((await platform.service.patch(`${path("parents")}/p3`, { name: "renamed" })).status).toBe(409);
});

test("[TB11] the total follows cascades and failed writes", async () => {
  const total = async (table: string) =>
    (await platform.service.get<{ total: number }>(`${path(table)}/count`)).body.total;
  const [owned, leaves] = [await total("owned"), await total("leaves")];
  await insert("parents", { id: "p9", name: "nine" });
  await insert("owned", { id: "o9", parent: "nine" });
  for (const id of ["f8", "f9"]) await insert("leaves", { id, owner: "o9" });
  await insert("leaves", { id: "f9", owner: "o9" });
  await platform.service.post(`${path("leaves")}/batch`, {
    inserts: [
      { id: "f10", owner: "o9" },
      { id: "f10", owner: "o9" },
    ],
  });
  expect([await total("owned"), await total("leaves")]).toEqual([owned + 1, leaves + 2]);
  await platform.service.delete(`${path("parents")}/p9`);
  expect([await total("owned"), await total("leaves")]).toEqual([owned, leaves]);
  await platform.kill("SIGKILL");
  await platform.restart();
  expect([await total("owned"), await total("leaves")]).toEqual([owned, leaves]);
});

test("[TB30] check refuses invalid records, and onUpdate sets its value with each update", async () => {
  expect(await problem({ title: "Check", total: -1 })).toEqual({ status: 400, codes: { total: "check_failed" } });
  expect(await problem({ title: "Check", subtotal: -1 })).toEqual({ status: 400, codes: { subtotal: "check_failed" } });
  expect(await problem({ title: "Check", tax: 100 })).toEqual({ status: 400, codes: { tax: "check_failed" } });
  const { body } = await insert("things", { title: "Check", total: 1 });
  await passed(body["updatedAt"]);
  const changed = await platform.service.patch(`${P}/${String(body["id"])}`, { total: 2 });
  expect(String(changed.body["touched"]) > String(body["touched"])).toBe(true);
  expect(changed.body["touched"]).toBe(changed.body["updatedAt"] ?? "");
});

test("[TB31] schemaless records", async () => {
  const document = { n: 1, s: "1", b: false, z: null, list: [1, { a: 2 }], deep: { x: { y: "here" } }, n2: 1.5 };
  const { status, body } = await insert("free", { id: "d1", ...document });
  expect(status).toBe(201);
  expect(body).toMatchObject(document);
  await insert("free", { id: "d2", n: "1", b: 0 });
  const found = async (filter: unknown) =>
    (
      await platform.get<{ items: JsonObject[] }>(path("free"), { query: { filter: JSON.stringify(filter) } })
    ).body.items.map((one) => one["id"]);
  expect(await found([["n", "==", 1]])).toEqual(["d1"]);
  expect(await found([["n", "==", "1"]])).toEqual(["d2"]);
  expect(await found([["b", "==", false]])).toEqual(["d1"]);
  expect(await found([["z", "==", null]])).toEqual(["d1", "d2"]);
  expect(await found([["deep.x.y", "contains", "er"]])).toEqual(["d1"]);
  expect(await found([["list", "contains", { a: 2 }]])).toEqual(["d1"]);
  const patched = await platform.service.patch(`${path("free")}/d1`, {
    n: { $op: "increment", value: 2 },
    s: { $op: "deleteField" },
    extra: [],
  });
  expect(patched.body).toMatchObject({ n: 3, extra: [], b: false });
  expect(patched.body).not.toHaveProperty("s");
  expect((await platform.get(path("free"), { query: { sort: "n:desc" } })).status).toBe(200);
});

test("[TB31] a schemaless record keeps the order of its fields, and may have none", async () => {
  const fields = { z: 1, a: { id: "inner" }, "7": true };
  await insert("free", { id: "o1", ...fields });
  await insert("free", { id: "o2" });
  const times = { createdAt: expect.any(String), updatedAt: expect.any(String) };
  const { body } = await platform.get<{ items: JsonObject[] }>(path("free"), {
    query: { filter: JSON.stringify([["id", "startsWith", "o"]]), sort: "id:asc" },
  });
  expect(body.items).toEqual([
    { id: "o1", ...fields, ...times },
    { id: "o2", ...times },
  ]);
  const { body: one } = await platform.get<JsonObject>(`${path("free")}/o1`);
  for (const shown of [one, body.items[0] ?? {}]) {
    // A name that is a whole number comes first in every object of JavaScript.
    expect(Object.keys(shown).filter((name) => name !== "7")).toEqual(["id", "z", "a", "createdAt", "updatedAt"]);
  }
  const { body: filled } = await platform.service.patch(`${path("free")}/o2`, { n: 1 });
  expect(filled).toEqual({ id: "o2", n: 1, ...times });
  const { body: emptied } = await platform.service.patch(`${path("free")}/o2`, { n: { $op: "deleteField" } });
  expect(emptied).toEqual({ id: "o2", ...times });
});

test("[TB32] bodies that are not JSON objects, or too large", async () => {
  const post = (body: string, contentType: string | null) =>
    platform.service.fetch(P, {
      method: "POST",
      body,
      headers: contentType === null ? {} : { "content-type": contentType },
    });
  expect((await post('{"title":"x"}', "text/plain")).status).toBe(415);
  expect((await post("{nope", "application/json")).status).toBe(400);
  expect((await post("", "application/json")).status).toBe(400);
  expect((await post("[]", "application/json")).status).toBe(400);
  expect((await post('"x"', "application/json")).status).toBe(400);
  expect((await post(`{"title":"${"x".repeat(200_000)}"}`, "application/json")).status).toBe(413);
  expect((await post(`${"[".repeat(40_000)}${"]".repeat(40_000)}`, "application/json")).status).toBe(400);
  expect((await post('{"title":"Fine"}', "application/json; charset=utf-8")).status).toBe(201);
});

test("[TB145] only a service key sets createdAt and updatedAt", async () => {
  const T = path("open");
  const times = { createdAt: "2001-01-01T00:00:00.000Z", updatedAt: "2001-01-02T00:00:00.000Z" };
  for (const [name, value] of Object.entries(times)) {
    for (const body of [{ [name]: value }, { [name]: null }, { [name]: 5 }]) {
      for (const table of ["open", "openFree"]) {
        const one = await platform.post<ErrorAnswer>(path(table), body);
        expect([table, one.status, one.body.data?.[name]?.code]).toEqual([table, 400, "invalid_value"]);
        const batch = await platform.post<ErrorAnswer>(`${path(table)}/batch`, { inserts: [{}, body] });
        expect([batch.status, batch.body.data?.[`inserts.1.${name}`]?.code]).toEqual([400, "invalid_value"]);
        const upsert = await platform.post<ErrorAnswer>(`${path(table)}?upsert=true`, { id: "new", ...body });
        expect([upsert.status, upsert.body.data?.[name]?.code]).toEqual([400, "invalid_value"]);
      }
    }
  }
  expect((await platform.service.post(T, { id: "old", ...times })).body).toMatchObject(times);
  expect((await platform.service.post(`${T}?upsert=true`, { id: "old2", ...times })).body).toMatchObject(times);
  for (const answer of [
    await platform.patch(`${T}/old`, { n: 1, id: "other", ...times }),
    await platform.post(`${T}?upsert=true`, {
      id: "old2",
      n: 1,
      createdAt: "2020-01-01T00:00:00Z",
      updatedAt: times.updatedAt,
    }),
    await platform.service.patch(`${T}/old`, { n: 2, ...times }),
  ]) {
    expect(answer).toMatchObject({ status: 200, body: { createdAt: times.createdAt } });
    expect(String(answer.body["updatedAt"]) > "2026").toBe(true);
  }
});
