import { afterAll, beforeAll, expect, test } from "bun:test";
import { Compile } from "typebox/schema";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const CONFIG = (more: string) => `import { defineConfig } from "platform";
  import { t } from "elysia";
  const size = t.Object({ width: t.Integer({ minimum: 1, maximum: 100 }), unit: t.Optional(t.Union([t.Literal("cm"), t.Literal("in")])) });
  const hooked = (record) => record.title === "by hook" ? { ...record, size: { width: 4711 } } : undefined;
  export default defineConfig({
    api: { schemaEndpoint: true },
    databases: { shared: { tables: {
      things: {
        schema: {
          title: { type: "string" },
          size: { type: "json" ${more} },
          tags: { type: "json", schema: t.Array(t.String({ maxLength: 5 }), { maxItems: 3 }), required: true, default: [] },
          open: { type: "json", schema: t.Object({ a: t.Number() }, { additionalProperties: true }) },
          tree: { type: "json", schema: t.Object({ rows: t.Array(t.Object({ name: t.String(), at: t.Array(t.Number(), { minItems: 2, maxItems: 2 }) })) }) },
        },
        access: { read: true, insert: true, update: true },
        hooks: { beforeInsert: (_auth, record) => hooked(record), beforeUpdate: (_auth, _record, changes) => hooked(changes) },
      },
    } } },
    routes: (api) => api.post("/app", async ({ app, body }) => {
      const things = app.db("shared").table("things");
      const tried = async (work) => { try { await work(); return "done"; } catch (error) { return Object.keys(error.data ?? {}).join(); } };
      return {
        insert: await tried(() => things.insert({ size: body.size })),
        update: await tried(() => things.update(body.id, { size: body.size })),
        transaction: await tried(() => app.db("shared").transaction((tx) => { tx.table("things").insert({ size: body.size }); })),
      };
    }),
  });`;
const WITH = ", schema: size";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG("") });
  for (const [id, size] of [
    ["old", { width: "wide", depth: 3 }],
    ["older", "none"],
  ] as const)
    expect((await platform.post(P, { id, size })).status).toBe(201);
  await platform.restart({ config: CONFIG(WITH) });
});
afterAll(() => platform.stop());

const P = "/api/db/shared/tables/things";
type Refused = [value: JsonValue, path: string, code: string];
const REFUSED: readonly Refused[] = [
  ["wide", "size", "invalid_type"],
  [[], "size", "invalid_type"],
  [{}, "size.width", "required"],
  [{ width: "1" }, "size.width", "invalid_type"],
  [{ width: 1.5 }, "size.width", "invalid_type"],
  [{ width: 0 }, "size.width", "too_small"],
  [{ width: 101 }, "size.width", "too_large"],
  [{ width: 1, unit: "mm" }, "size.unit", "invalid_value"],
  [{ width: 1, depth: 1 }, "size.depth", "unknown_field"],
  [{ width: 1, constructor: 1 }, "size.constructor", "unknown_field"],
];
const problemsOf = ({ body }: { body: ErrorAnswer }) =>
  Object.entries(body.data ?? {}).map(([name, { code }]) => [name, code]);

test("[TB874] JSON with a schema is checked at every way in, and the fault is named by its path", async () => {
  const { body: made } = await platform.post<{ id: string }>(P, { size: { width: 5, unit: "cm" } });
  const at = `${P}/${made.id}`;
  for (const [size, path, code] of REFUSED) {
    const ways = {
      insert: await platform.post<ErrorAnswer>(P, { size }),
      update: await platform.patch<ErrorAnswer>(at, { size }),
      upsert: await platform.post<ErrorAnswer>(`${P}?upsert=true`, { id: made.id, size }),
      import: await platform.service.post<ErrorAnswer>(`${P}/batch?upsert=true`, { inserts: [{ id: made.id, size }] }),
      batch: await platform.post<ErrorAnswer>(`${P}/batch`, { inserts: [{ size }] }),
      updates: await platform.post<ErrorAnswer>(`${P}/batch`, { updates: [{ id: made.id, data: { size } }] }),
      filtered: await platform.post<ErrorAnswer>(`${P}/batch-by-filter`, {
        action: "update",
        filter: [["id", "==", made.id]],
        data: { size },
      }),
      transaction: await platform.post<ErrorAnswer>("/api/db/shared/transaction", {
        operations: [{ action: "insert", table: "things", data: { size } }],
      }),
      change: await platform.post<ErrorAnswer>("/api/db/shared/transaction", {
        operations: [{ action: "update", table: "things", id: made.id, data: { size } }],
      }),
    };
    for (const [way, answer] of Object.entries(ways)) {
      const [[name = "", found] = []] = problemsOf(answer);
      expect([way, answer.status, name.endsWith(path), found]).toEqual([way, 400, true, code]);
    }
    const app = await platform.service.post("/api/functions/app", { id: made.id, size });
    expect(app.body).toEqual({ insert: path, update: path, transaction: path });
  }
  expect((await platform.get(at)).body["size"]).toEqual({ width: 5, unit: "cm" });
  for (const size of [{ width: 1 }, { width: 100, unit: "in" }, null]) {
    expect((await platform.patch(at, { size })).body["size"]).toEqual(size);
  }
  expect((await platform.patch(at, { size: { $op: "deleteField" } })).body["size"]).toBeNull();
  const increment = await platform.patch<ErrorAnswer>(at, { size: { $op: "increment", value: 1 } });
  expect(increment.status).toBe(400);
});

test("[TB874] what a hook returns is checked, and its values are not told", async () => {
  const inserted = await platform.post<ErrorAnswer>(P, { title: "by hook" });
  expect([inserted.status, problemsOf(inserted)]).toEqual([400, [["size.width", "too_large"]]]);
  const updated = await platform.patch<ErrorAnswer>(`${P}/old`, { title: "by hook" });
  expect([updated.status, problemsOf(updated)]).toEqual([400, [["size.width", "too_large"]]]);
  expect(JSON.stringify([inserted.body, updated.body])).not.toContain("4711");
});

test("[TB874] lists, inner objects and open objects are checked as their schema says", async () => {
  const cases: [body: JsonObject, problems: string[]][] = [
    [{ tags: ["a", "toolong"] }, ["tags.1"]],
    [{ tags: ["a", "b", "c", "d"] }, ["tags"]],
    [{ tags: null }, ["tags"]],
    [{ open: { a: 1, b: { c: 2 } } }, []],
    [{ open: { b: 1 } }, ["open.a"]],
    [{ tree: { rows: [{ name: "x", at: [1, 2] }] } }, []],
    [{ tree: { rows: [{ name: "x", at: [1, 2], more: 1 }] } }, ["tree.rows.0.more"]],
    [{ tree: { rows: [{ name: "x", at: [1, 2] }, { at: [1, 2] }] } }, ["tree.rows.1.name"]],
    [{ size: { width: 0 }, tags: "none", title: 5 }, ["size.width", "tags", "title"]],
  ];
  for (const [body, problems] of cases) {
    const answer = await platform.post<ErrorAnswer>(P, body);
    expect([body, answer.status]).toEqual([body, problems.length === 0 ? 201 : 400]);
    expect(Object.keys(answer.body.data ?? {}).toSorted()).toEqual(problems);
  }
  expect((await platform.post<JsonObject>(P, {})).body["tags"]).toEqual([]);
  let deep: JsonValue = 1;
  for (let level = 0; level < 70; level++) deep = { deep };
  expect((await platform.post(P, { open: { a: 1, deep } })).status).toBe(400);
});

test("[TB875] what was stored before stays, is read and filtered, and does not hinder a change of other fields", async () => {
  expect((await platform.get(`${P}/old`)).body["size"]).toEqual({ width: "wide", depth: 3 });
  expect((await platform.patch(`${P}/old`, { title: "renamed" })).body).toMatchObject({
    title: "renamed",
    size: { depth: 3 },
  });
  const query = { filter: '[["size.width","==","wide"]]' };
  expect((await platform.get(P, { query })).body["items"]).toHaveLength(1);
  expect((await platform.patch(`${P}/older`, { size: "none" })).status).toBe(400);
  expect((await platform.patch(`${P}/older`, { size: { width: 2 } })).status).toBe(200);
});

test("[TB876] the OpenAPI document has the schema of what is sent", async () => {
  interface Document {
    components: { schemas: Record<string, { properties: Record<string, object> }> };
  }
  const { components } = (await platform.get<Document>("/swagger/json")).body;
  for (const [kind, ofNull] of [
    ["insert", true],
    ["update", true],
  ] as const) {
    const { size } = components.schemas[`shared.things.${kind}`]?.properties ?? {};
    const checker = Compile({ ...size, components } as never);
    const simple = JSON.stringify(size);
    expect([simple.includes('"width"'), simple.includes("~")]).toEqual([true, false]);
    if (kind === "insert") {
      for (const [value] of REFUSED) expect([value, checker.Check(value)]).toEqual([value, false]);
      expect([checker.Check({ width: 1 }), checker.Check(null)]).toEqual([true, ofNull]);
    }
  }
});
