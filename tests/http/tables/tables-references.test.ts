import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const at = (table: string, id: string) => `${path(table)}/${id}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig, Refusal } from "platform";
      const access = { read: true, insert: true, update: true, delete: true };
      const to = (table, onDelete) => ({ type: "string", references: { table, onDelete } });
      export default defineConfig({ databases: { shared: { tables: {
        tree: { schema: { parent: to("tree", "cascade") }, indexes: [{ fields: ["parent"] }], access },
        left: { schema: { right: to("right", "cascade") }, access },
        right: { schema: { left: to("left", "cascade") }, access },
        checkedLeft: { schema: { right: { ...to("checkedRight", "cascade"), check: "right IS NOT NULL OR id = 'first'" } }, access },
        checkedRight: { schema: { left: { ...to("checkedLeft", "cascade"), check: "left IS NOT NULL" } }, access },
        leaves: { schema: { owner: to("owners", "cascade"), text: { type: "text" } }, access },
        searched: { schema: { owner: to("owners", "cascade"), text: { type: "text" } }, fts: ["text"], access },
        kept: { schema: {}, access, hooks: { beforeDelete(_auth, record) { if (record.id === "keep") throw new Refusal("kept"); } } },
        ofKept: { schema: { owner: to("kept", "cascade") }, access },
        owners: { schema: { name: { type: "string" } }, access },
        letting: { schema: { a: to("owners", "set null"), b: to("owners", "set null"), touched: { type: "datetime", onUpdate: "now" } }, access },
        checked: { schema: { owner: { ...to("owners", "set null"), check: "owner IS NOT NULL" } }, access },
        aGrand: { schema: { owner: to("owners", "cascade"), child: to("children", "restrict") }, access },
        children: { schema: { owner: to("owners", "cascade") }, access },
        zGrand: { schema: { owner: to("owners", "cascade"), child: to("children", "restrict") }, access },
      } } } });`,
  });
});
afterAll(() => platform.stop());

/** Resolves when the clock has passed this time, so that a change gets a later one. */
async function passed(time: unknown): Promise<void> {
  while (Date.now() <= Date.parse(String(time))) await Bun.sleep(1);
}

const insert = async (table: string, body: JsonObject) => {
  const answer = await platform.post(path(table), body);
  expect([body, answer.status]).toEqual([body, 201]);
  return answer.body;
};
const total = async (table: string) => (await platform.get<{ total: number }>(`${path(table)}/count`)).body.total;

/** Each record but the first refers to the one before it. */
async function chain(length: number): Promise<void> {
  const records = Array.from({ length }, (_, n) => ({ id: `t${n}`, ...(n === 0 ? {} : { parent: `t${n - 1}` }) }));
  for (let start = 0; start < length; start += 500) {
    const answer = await platform.post(`${path("tree")}/batch`, { inserts: records.slice(start, start + 500) });
    expect(answer.status).toBe(200);
  }
}

test("[TB73] a chain of 1,600 is deleted at once, one of 1,700 is refused, and a cycle of hundreds ends", async () => {
  await chain(1_700);
  const refused = await platform.delete<ErrorAnswer>(at("tree", "t0"));
  expect([refused.status, refused.body.message]).toEqual([409, expect.stringContaining("5000")]);
  expect(await total("tree")).toBe(1_700);
  expect((await platform.delete(at("tree", "t1600"))).status).toBe(200);
  expect((await platform.patch(at("tree", "t0"), { parent: "t1599" })).status).toBe(200);
  expect((await platform.delete(at("tree", "t800"))).status).toBe(200);
  expect(await total("tree")).toBe(0);
});

const THOUSANDS = 6_000;

/** Records of `letting` and `aGrand` that refer to this owner. */
async function fill(table: string, count: number, record: JsonObject): Promise<void> {
  for (let done = 0; done < count; done += 500) {
    const inserts = Array.from({ length: Math.min(500, count - done) }, () => record);
    expect((await platform.post(`${path(table)}/batch`, { inserts })).status).toBe(200);
  }
}

test("[TB141] one request deletes up to 5,000 referring records, however many records it names", async () => {
  const owners = ["p0", "p1", "p2"];
  for (const id of owners) {
    await insert("owners", { id });
    await fill("leaves", 2_000, { owner: id });
  }
  const batch = await platform.post<ErrorAnswer>(`${path("owners")}/batch`, { deletes: owners });
  expect([batch.status, Object.keys(batch.body.data ?? {})]).toEqual([409, ["deletes.2"]]);
  // A batch is all or nothing for every caller.
  expect((await platform.service.post(`${path("owners")}/batch`, { deletes: owners })).status).toBe(409);
  const byFilter = { action: "delete", filter: [["id", "in", owners]] };
  expect((await platform.post(`${path("owners")}/batch-by-filter`, byFilter)).status).toBe(409);
  expect([await total("owners"), await total("leaves")]).toEqual([3, THOUSANDS]);
  const steps = await platform.service.post(`${path("owners")}/batch-by-filter`, byFilter);
  expect(steps).toMatchObject({ status: 200, body: { processed: 3, succeeded: 3 } });
  expect([await total("owners"), await total("leaves")]).toEqual([0, 0]);
});

test("[TB141] long and searchable records count by their size", async () => {
  await insert("owners", { id: "long" });
  for (let n = 0; n < 13; n++) await insert("leaves", { owner: "long", text: "x".repeat(900_000) });
  expect((await platform.delete(at("owners", "long"))).status).toBe(409);
  await fill("searched", 60, { owner: "long", text: "some words ".repeat(250) });
  expect((await platform.service.delete(at("owners", "long"))).status).toBe(200);
  expect([await total("leaves"), await total("searched")]).toEqual([0, 0]);
});

test("[TB142] with a service key larger deletes run in steps: referring records first, references set to null, restrict refuses", async () => {
  await insert("owners", { id: "big" });
  await fill("leaves", THOUSANDS, { owner: "big" });
  await fill("letting", 3_000, { a: "big" });
  await insert("children", { id: "c", owner: "big" });
  await insert("aGrand", { id: "g", child: "c" });
  expect((await platform.delete(at("owners", "big"))).status).toBe(409);
  const restricted = await platform.service.delete<ErrorAnswer>(at("owners", "big"));
  expect([restricted.status, restricted.body.message]).toEqual([409, "Records of aGrand refer to this one by child"]);
  expect([await total("leaves"), await total("letting")]).toEqual([THOUSANDS, 3_000]);
  expect((await platform.patch(at("aGrand", "g"), { owner: "big" })).status).toBe(200);
  expect((await platform.service.delete(at("owners", "big"))).status).toBe(200);
  expect([await total("leaves"), await total("children"), await total("aGrand")]).toEqual([0, 0, 0]);
  const filter = JSON.stringify([["a", "!=", null]]);
  expect((await platform.get(`${path("letting")}/count?filter=${encodeURIComponent(filter)}`)).body).toEqual({
    total: 0,
  });
});

test("[TB142] [TB301] the steps of a deletion end when the record does not meet the condition any more", async () => {
  await insert("owners", { id: "asked", name: "before" });
  await fill("leaves", THOUSANDS, { owner: "asked" });
  const [deleted, changed] = await Promise.all([
    platform.service.delete(`${at("owners", "asked")}?if=${encodeURIComponent('[["name","==","before"]]')}`),
    platform.patch(at("owners", "asked"), { name: "after" }),
  ]);
  expect([deleted.status, changed.status]).toEqual([412, 200]);
  expect(await total("leaves")).toBeGreaterThan(0);
  expect((await platform.service.delete(at("owners", "asked"))).status).toBe(200);
  expect(await total("leaves")).toBe(0);
});

test("[TB142] a long chain and a cycle are deleted in steps, and a hook that keeps a record keeps its referring records", async () => {
  await chain(3_000);
  expect((await platform.patch(at("tree", "t0"), { parent: "t2999" })).status).toBe(200);
  expect((await platform.service.delete(at("tree", "t10"))).status).toBe(200);
  expect(await total("tree")).toBe(0);
  await insert("kept", { id: "keep" });
  await insert("kept", { id: "goes" });
  for (const owner of ["keep", "goes"]) await fill("ofKept", 5_500, { owner });
  const answer = await platform.service.post(`${path("kept")}/batch-by-filter`, {
    action: "delete",
    filter: [["id", "in", ["keep", "goes"]]],
  });
  expect(answer.body).toEqual({ processed: 2, succeeded: 1 });
  expect([await total("kept"), await total("ofKept")]).toEqual([1, 5_500]);
});

test("[TB73] cycles of cascades over several tables, and of a record with itself", async () => {
  await insert("left", { id: "l" });
  await insert("right", { id: "r", left: "l" });
  await platform.patch(at("left", "l"), { right: "r" });
  await insert("left", { id: "l2", right: "r" });
  expect((await platform.delete(at("right", "r"))).status).toBe(200);
  expect([await total("left"), await total("right")]).toEqual([0, 0]);
  await insert("tree", { id: "self", parent: "self" });
  expect((await platform.delete(at("tree", "self"))).status).toBe(200);
  expect(await total("tree")).toBe(0);
});

test("[TB73] a cycle of cascades whose checks forbid null", async () => {
  await insert("checkedLeft", { id: "first" });
  await insert("checkedRight", { id: "r", left: "first" });
  await insert("checkedLeft", { id: "l", right: "r" });
  expect((await platform.patch(at("checkedRight", "r"), { left: "l" })).status).toBe(200);
  expect((await platform.patch(at("checkedLeft", "first"), { right: "r" })).status).toBe(200);
  expect((await platform.delete(at("checkedRight", "r"))).status).toBe(200);
  expect([await total("checkedLeft"), await total("checkedRight")]).toEqual([0, 0]);
});

test("[TB73] restrict refuses only for records that are not deleted themselves", async () => {
  for (const table of ["aGrand", "zGrand"]) {
    await insert("owners", { id: "o" });
    await insert("children", { id: "c", owner: "o" });
    await insert(table, { id: "g", child: "c" });
    const refused = await platform.delete<ErrorAnswer>(at("owners", "o"));
    expect([table, refused.status, refused.body.message]).toEqual([
      table,
      409,
      `Records of ${table} refer to this one by child`,
    ]);
    expect((await platform.patch(at(table, "g"), { owner: "o" })).status).toBe(200);
    expect([table, (await platform.delete(at("owners", "o"))).status]).toEqual([table, 200]);
    expect([await total("children"), await total(table)]).toEqual([0, 0]);
  }
});

test("[TB74] setting references to null changes updatedAt, and both fields at once", async () => {
  await insert("owners", { id: "o" });
  const before = await insert("letting", { id: "x", a: "o", b: "o" });
  await passed(before["updatedAt"]);
  expect((await platform.delete(at("owners", "o"))).status).toBe(200);
  const { body } = await platform.get(at("letting", "x"));
  expect(body).toMatchObject({ a: null, b: null, createdAt: String(before["createdAt"]) });
  expect(String(body["updatedAt"]) > String(before["updatedAt"])).toBe(true);
  expect(body["touched"]).toBe(body["updatedAt"] ?? "");
});

test("[TB74] where null violates a check, the deletion is a conflict", async () => {
  await insert("owners", { id: "o" });
  await insert("checked", { id: "x", owner: "o" });
  const { status, body } = await platform.delete<ErrorAnswer>(at("owners", "o"));
  expect(status).toBe(409);
  expect(body.message).toContain("Records of checked refer to this one by owner and cannot be set to null");
  expect((await platform.get(at("owners", "o"))).status).toBe(200);
});
