import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../src/kernel/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const at = (table: string, id: string) => `${path(table)}/${id}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const access = { read: true, insert: true, update: true, delete: true };
      const to = (table, onDelete) => ({ type: "string", references: { table, onDelete } });
      export default defineConfig({ databases: { shared: { tables: {
        tree: { schema: { parent: to("tree", "cascade") }, indexes: [{ fields: ["parent"] }], access },
        left: { schema: { right: to("right", "cascade") }, access },
        right: { schema: { left: to("left", "cascade") }, access },
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

const insert = async (table: string, body: JsonObject) => {
  const answer = await platform.post(path(table), body);
  expect([body, answer.status]).toEqual([body, 201]);
  return answer.body;
};
const total = async (table: string) => (await platform.get<{ total: number }>(`${path(table)}/count`)).body.total;

/** Each but the first refers to the one before it. */
async function chain(length: number): Promise<void> {
  const records = Array.from({ length }, (_, n) => ({ id: `t${n}`, ...(n === 0 ? {} : { parent: `t${n - 1}` }) }));
  for (let start = 0; start < length; start += 500) {
    const answer = await platform.post(`${path("tree")}/batch`, { inserts: records.slice(start, start + 500) });
    expect(answer.status).toBe(200);
  }
}

test("[TB73] a chain of 10,000 goes at once, one more is refused, and a ring of thousands is none for ever", async () => {
  await chain(10_001);
  const refused = await platform.delete<ErrorAnswer>(at("tree", "t0"));
  expect([refused.status, refused.body.message]).toEqual([409, expect.stringContaining("10000")]);
  expect(await total("tree")).toBe(10_001);
  expect((await platform.delete(at("tree", "t10000"))).status).toBe(200);
  expect((await platform.patch(at("tree", "t0"), { parent: "t9999" })).status).toBe(200);
  expect((await platform.delete(at("tree", "t5000"))).status).toBe(200);
  expect(await total("tree")).toBe(0);
});

test("[TB73] rings of cascade over tables, and of a record with itself", async () => {
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

test("[TB73] restrict refuses for what stays, and not for what goes as well", async () => {
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

test("[TB74] what lets go is changed: its times, and both of its fields at once", async () => {
  await insert("owners", { id: "o" });
  const before = await insert("letting", { id: "x", a: "o", b: "o" });
  await Bun.sleep(5);
  expect((await platform.delete(at("owners", "o"))).status).toBe(200);
  const { body } = await platform.get(at("letting", "x"));
  expect(body).toMatchObject({ a: null, b: null, createdAt: String(before["createdAt"]) });
  expect(String(body["updatedAt"]) > String(before["updatedAt"])).toBe(true);
  expect(body["touched"]).toBe(body["updatedAt"] ?? "");
});

test("[TB74] where letting go breaks a check, the deletion is the conflict", async () => {
  await insert("owners", { id: "o" });
  await insert("checked", { id: "x", owner: "o" });
  const { status, body } = await platform.delete<ErrorAnswer>(at("owners", "o"));
  expect(status).toBe(409);
  expect(body.message).toContain("Records of checked refer to this one by owner and cannot let go");
  expect((await platform.get(at("owners", "o"))).status).toBe(200);
});
