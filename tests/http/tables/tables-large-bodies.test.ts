import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

type Row = Record<string, unknown>;

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
/** More values than are left to the transaction: such bodies are checked and serialised before it. */
const MEMBERS = 2_000;
const BODIES = 6;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const open = { read: true, insert: true, update: true, delete: true, upsert: "matching" };
      const later = async (_auth, record) => { await Bun.sleep(1); return record.m0 !== "refused"; };
      export default defineConfig({ databases: { shared: { tables: {
        free: { access: open },
        typed: { schema: { name: { type: "string", unique: true, required: true }, list: { type: "json" } }, access: open },
        later: { access: { ...open, insert: later } },
        hooked: { access: open, hooks: { beforeInsert: (_auth, record) => (record.m0 === 0 ? { ...record, added: true } : undefined) } },
      } } } });`,
  });
});
afterAll(() => platform.stop());

const document = (values: Row = {}): Row => ({
  ...values,
  ...Object.fromEntries(Array.from({ length: MEMBERS }, (_, index) => [`m${index}`, index])),
});
const list = () => Array.from({ length: MEMBERS }, (_, index) => ({ n: index }));
const batch = (table: string, body: object, query = "") =>
  platform.service.post<{ inserted: Row[]; updated: Row[] } & ErrorAnswer>(
    `${path(table)}/batch${query}`,
    body as never,
  );
const stored = async (table: string, id: unknown): Promise<Row> =>
  (await platform.service.get<Row>(`${path(table)}/${id}`)).body;
const countOf = async (table: string): Promise<number> =>
  (await platform.service.get<{ total: number }>(`${path(table)}/count`)).body.total;

test("[TB128, TB31] documents of a large batch are stored as they are sent, whatever their members are named", async () => {
  const times = { createdAt: "2020-01-02T03:04:05.000Z", updatedAt: "2021-01-02T03:04:05.000Z" };
  const sent: Row[] = [
    document({ id: "plain" }),
    { ...document(), last: times },
    { ...document(), ...times, behind: "x" },
    { ...times, ...document({ id: 'say "hello",' }) },
    { ...document(), text: ',"createdAt":"x","updatedAt":"y"}' },
    {},
    { only: ['{"id":', "ä", "\u2028"] },
  ];
  const { status, body } = await batch("free", { inserts: sent });
  expect([status, body.inserted?.length]).toEqual([200, sent.length]);
  for (const [index, record] of body.inserted.entries()) {
    const { id, createdAt, updatedAt } = record;
    expect(record).toEqual({ id, createdAt, updatedAt, ...sent[index] });
    const found = await stored("free", encodeURIComponent(String(id)));
    expect(found).toEqual(record);
    const own = (names: string[]) => names.filter((name) => !["id", "createdAt", "updatedAt"].includes(name));
    expect(own(Object.keys(found))).toEqual(own(Object.keys(sent[index] ?? {})));
  }
});

test("[TB128, TB36] of a large batch the first operation at fault is named, and nothing is stored", async () => {
  const before = await countOf("typed");
  const good = (name: string) => ({ name, list: list() });
  const inserts = Array.from({ length: BODIES }, (_, index) => good(`good${index}`));
  const withFaults = (faults: Record<number, Row>) => ({ inserts: inserts.map((one, index) => faults[index] ?? one) });
  const cases: [Record<number, Row>, number, string][] = [
    [{ 4: { list: list() } }, 400, "inserts.4.name"],
    [{ 2: { name: 5, list: list() }, 4: { list: list() } }, 400, "inserts.2.name"],
    [{ 1: good("good0"), 3: { list: list() } }, 409, "inserts.1.name"],
    [{ 3: { ...good("x"), unknown: 1 } }, 400, "inserts.3.unknown"],
    [{ 3: { ...good("x"), name: { $op: "increment", value: 1 } } }, 400, "inserts.3.name"],
  ];
  for (const [faults, status, field] of cases) {
    const answer = await batch("typed", withFaults(faults));
    expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([status, [field]]);
  }
  expect(await countOf("typed")).toBe(before);
  const asNobody = await platform.post<ErrorAnswer>(`${path("free")}/batch`, {
    inserts: [...Array.from({ length: BODIES }, () => document()), { createdAt: "2020-01-02T03:04:05.000Z" }],
  } as never);
  expect([asNobody.status, Object.keys(asNobody.body.data ?? {})]).toEqual([400, [`inserts.${BODIES}.createdAt`]]);
});

test("[TB128, TB33] a large batch upserts: stored records are changed, others are inserted", async () => {
  await batch("typed", { inserts: [{ id: "t1", name: "one", list: [] }] });
  const both = {
    inserts: [
      { id: "t1", name: "changed", list: list() },
      ...Array.from({ length: BODIES }, (_, n) => ({ id: `u${n}`, name: `u${n}`, list: list() })),
    ],
  };
  const { status, body } = await batch("typed", both, "?upsert=true");
  expect([status, body.inserted?.length]).toEqual([200, BODIES + 1]);
  expect(await stored("typed", "t1")).toMatchObject({ name: "changed", list: list() });
  expect(await stored("typed", "u3")).toMatchObject({ name: "u3", list: list() });
});

test("[TB128, TB76] rules that are awaited and hooks see the records of a large batch, which keep their ids", async () => {
  const inserts = Array.from({ length: BODIES }, () => document());
  const asked = await platform.post<{ inserted: Row[] }>(`${path("later")}/batch`, { inserts } as never);
  expect(asked.status).toBe(200);
  for (const record of asked.body.inserted) expect(await stored("later", record["id"])).toEqual(record);
  const refused = [...inserts.slice(1), { ...document(), m0: "refused" }];
  const answer = await platform.post<ErrorAnswer>(`${path("later")}/batch`, { inserts: refused } as never);
  expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([401, [`inserts.${BODIES - 1}`]]);
  expect(await countOf("later")).toBe(BODIES);
  const hooked = await batch("hooked", { inserts: [...inserts, { ...document(), m0: 1 }] });
  expect(hooked.status).toBe(200);
  expect(hooked.body.inserted.map(({ added }) => added)).toEqual([...inserts.map(() => true), undefined]);
  expect((await stored("hooked", hooked.body.inserted[0]?.["id"]))["added"]).toBe(true);
});

test("[TB128, TB304] a large transaction keeps the order of its operations and names the one at fault", async () => {
  const insert = (table: string, data: Row) => ({ table, action: "insert", data });
  const operations = [
    insert("free", document({ id: "x1" })),
    { table: "free", action: "update", id: "x1", data: { ...document(), m1: "changed", more: list() } },
    ...Array.from({ length: BODIES }, (_, n) => insert("typed", { name: `x${n}`, list: list() })),
  ];
  const transact = (all: readonly object[]) =>
    platform.service.post<{ results: Row[] } & ErrorAnswer>("/api/db/shared/transaction", { operations: all } as never);
  const faulty = await transact([...operations, insert("free", { constructor: 1 })]);
  expect([faulty.status, Object.keys(faulty.body.data ?? {})]).toEqual([400, ["operations.8.data.constructor"]]);
  expect((await platform.service.get(`${path("free")}/x1`)).status).toBe(404);
  const { status, body } = await transact(operations);
  expect([status, body.results?.length]).toEqual([200, operations.length]);
  expect(await stored("free", "x1")).toMatchObject({ m0: 0, m1: "changed", more: list() });
  const { id } = body.results[2] ?? {};
  expect(await stored("typed", id)).toMatchObject({ name: "x0", list: list() });
});
