import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const TEXT = "x".repeat(900_000);
const IDS = ["a", "b", "c", "d", "e", "f"];

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const schema = { n: { type: "integer" }, text: { type: "text" } };
      const open = { read: true, insert: true, update: true, delete: true };
      const later = async (_auth, record) => { await Bun.sleep(1); return record.n < 90; };
      export default defineConfig({ databases: { shared: { tables: {
        plain: { schema, access: open }, free: { access: open }, later: { schema, access: { ...open, update: later } },
        locked: { schema, access: { ...open, update: (_auth, record) => record.id === "own", read: (_auth, record) => record.id === "own" } },
        patterned: { schema: { text: { type: "text", pattern: "^a+$" } }, access: open },
        long: { maxRecordSize: 10 * 1024 * 1024, schema, access: open },
      } } } });`,
  });
});
afterAll(() => platform.stop());

const TOO_LARGE = { status: 413, body: { message: expect.stringContaining("4194304 bytes") } };

for (const table of ["plain", "free", "later"]) {
  test(`[TB148] the stored records that one request changes are bounded: ${table}`, async () => {
    const P = path(table);
    for (const id of IDS) expect((await platform.post(P, { id, n: 1, text: TEXT })).status).toBe(201);
    const change = (ids: readonly string[]) => ({ updates: ids.map((id) => ({ id, data: { n: 2 } })) });
    const byFilter = (limit: string, rest: object) =>
      platform.post<ErrorAnswer>(`${P}/batch-by-filter`, { filter: [["id", "<", limit]], ...rest } as never);
    expect(await platform.post<ErrorAnswer>(`${P}/batch`, change(IDS))).toMatchObject(TOO_LARGE);
    const upserts = { inserts: IDS.map((id) => ({ id, n: 2 })) };
    expect(await platform.post<ErrorAnswer>(`${P}/batch?upsert=true`, upserts)).toMatchObject(TOO_LARGE);
    expect(await platform.post<ErrorAnswer>(`${P}/batch`, { deletes: IDS })).toMatchObject(TOO_LARGE);
    const found = await platform.get<{ items: { n: number }[] }>(`${P}?fields=n`);
    expect(found.body.items.map(({ n }) => n)).toEqual(IDS.map(() => 1));
    expect((await platform.post(`${P}/batch`, change(IDS.slice(0, 4)))).status).toBe(200);
    expect((await byFilter("d", { action: "update", data: { n: 3 } })).body).toMatchObject({ succeeded: 3 });
    expect((await byFilter("z", { action: "delete" })).body).toMatchObject({ succeeded: 5 });
    expect((await byFilter("z", { action: "delete" })).body).toMatchObject({ succeeded: 1 });
  });
}

test("[TB148] the error does not reveal the size of records that may not be changed or read", async () => {
  const P = path("locked");
  for (const id of ["own", ...IDS]) await platform.post(P, { id, n: 1, text: TEXT });
  const updates = ["own", ...IDS].map((id) => ({ id, data: { n: 2 } }));
  const long = await platform.post<ErrorAnswer>(`${P}/batch`, { updates });
  await platform.post(P, { id: "short", n: 1 });
  const short = await platform.post<ErrorAnswer>(`${P}/batch`, {
    updates: [updates[0] ?? {}, { id: "short", data: { n: 2 } }],
  });
  expect([long.status, Object.keys(long.body.data ?? {})]).toEqual([401, ["updates.1"]]);
  expect([short.status, Object.keys(short.body.data ?? {})]).toEqual([401, ["updates.1"]]);
});

test("[TB148] a record of many members counts by the time that it takes", async () => {
  const P = path("free");
  const members = Object.fromEntries(Array.from({ length: 40_000 }, (_, index) => [`k${index}`, 1]));
  expect((await platform.post(P, { id: "wide", ...members })).status).toBe(201);
  expect((await platform.post(P, { id: "deep", members })).status).toBe(201);
  for (const id of ["wide", "deep"]) {
    const change = (count: number) => ({ updates: Array.from({ length: count }, (_, n) => ({ id, data: { n } })) });
    expect((await platform.post(`${P}/batch`, change(2))).status).toBe(200);
    expect(await platform.post<ErrorAnswer>(`${P}/batch`, change(500))).toMatchObject({
      ...TOO_LARGE,
      body: { data: { "updates.3": { code: "too_large" } } },
    });
    expect((await platform.delete(`${P}/${id}`)).status).toBe(200);
  }
  const hundred = Object.fromEntries(Array.from({ length: 98 }, (_, index) => [`field${index}`, index]));
  const inserts = Array.from({ length: 500 }, (_, n) => ({ id: `h${n}`, ...hundred }));
  expect((await platform.post(`${P}/batch`, { inserts })).status).toBe(200);
  const updates = inserts.map(({ id }) => ({ id, data: { n: 1 } }));
  expect((await platform.post(`${P}/batch`, { updates })).status).toBe(200);
});

test("[TB148] a single record may be as long as its table allows", async () => {
  const P = path("long");
  expect((await platform.post(P, { id: "a", n: 1, text: "x".repeat(9_000_000) })).status).toBe(201);
  expect((await platform.post(`${P}/batch`, { updates: [{ id: "a", data: { n: 2 } }] })).status).toBe(200);
  expect((await platform.patch(`${P}/a`, { n: 3 })).status).toBe(200);
  expect((await platform.delete(`${P}/a`)).status).toBe(200);
});

test("[TB149] texts of a batch that have to match a pattern are bounded together", async () => {
  const P = path("patterned");
  const text = "a".repeat(5_000);
  const four = await platform.post(`${P}/batch`, { inserts: IDS.slice(0, 4).map((id) => ({ id, text })) });
  expect(four.status).toBe(200);
  const five = await platform.post<ErrorAnswer>(`${P}/batch`, {
    inserts: [{ text }, { text }],
    updates: IDS.slice(0, 3).map((id) => ({ id, data: { text } })),
  });
  expect([five.status, five.body.data?.["updates.2.text"]?.code]).toEqual([400, "too_long"]);
  const short = Array.from({ length: 500 }, () => ({ text: "a".repeat(440) }));
  expect((await platform.post(`${P}/batch`, { inserts: short })).status).toBe(200);
});
