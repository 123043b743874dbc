import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      ruled: { schema: { n: { type: "integer", default: 0 } },
        access: { read: true, insert: true, delete: true, update: async (_auth, record) => { await Bun.sleep(1); return true } } },
      hooked: { schema: { n: { type: "integer", default: 0 }, seen: { type: "integer" } },
        access: { read: true, insert: true, update: true, delete: true },
        hooks: { beforeUpdate: async (_auth, record, changes) => { await Bun.sleep(1); return { ...changes, seen: record.n } } } },
      read: { schema: { n: { type: "integer", default: 0 } },
        access: { read: async (_auth, record) => { await Bun.sleep(1); return true }, insert: true, update: true } },
    } } } }`,
  });
});
afterAll(() => platform.stop());

const increment = { n: { $op: "increment", value: 1 } };
const times = <T>(count: number, work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));

for (const table of ["ruled", "hooked", "read"]) {
  test(`[TB71] sixty parallel increments of one record, all awaited (${table})`, async () => {
    await platform.post(path(table), { id: "a" });
    const answers = await times(60, () => platform.patch(`${path(table)}/a`, increment));
    expect(answers.map(({ status }) => status)).toEqual(Array(60).fill(200));
    expect(answers.map(({ body }) => body["n"]).sort((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
    expect((await platform.get(`${path(table)}/a`)).body["n"]).toBe(60);
  });
}

test("[TB71] batches that share records in different orders take turns without a deadlock", async () => {
  const P = path("ruled");
  const ids = ["b1", "b2", "b3", "b4"];
  await platform.post(`${P}/batch`, { inserts: ids.map((id) => ({ id })) });
  const answers = await times(40, async (index) => {
    const turned = [...ids.slice(index % 4), ...ids.slice(0, index % 4)];
    if (index % 5 === 0) return platform.patch(`${P}/${turned[0]}`, increment);
    if (index % 5 === 1)
      return platform.post(`${P}/batch-by-filter`, { action: "update", data: increment, filter: [["id", "in", ids]] });
    return platform.post(`${P}/batch`, { updates: turned.map((id) => ({ id, data: increment })) });
  });
  expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200));
  const sums = await Promise.all(ids.map((id) => platform.get(`${P}/${id}`)));
  expect(sums.reduce((sum, { body }) => sum + Number(body["n"]), 0)).toBe(8 + 32 * 4);
});

test("[TB71] parallel upserts of a record that does not exist yet", async () => {
  const answers = await times(30, (index) => platform.post(`${path("hooked")}?upsert=true`, { id: "new", n: index }));
  expect(answers.filter(({ status }) => status === 201).length).toBe(1);
  expect(answers.filter(({ status }) => status === 200).length).toBe(29);
});

test("[TB71] synchronous writes overtake awaited ones, which restart", async () => {
  const P = path("ruled");
  await platform.post(P, { id: "c" });
  const [awaited, direct] = await Promise.all([
    times(20, () => platform.patch(`${P}/c`, increment)),
    times(5, async (index) => {
      await Bun.sleep(index * 3);
      return platform.service.patch(`${P}/c`, increment);
    }),
  ]);
  expect([...awaited, ...direct].map(({ status }) => status)).toEqual(Array(25).fill(200));
  expect((await platform.get(`${P}/c`)).body["n"]).toBe(25);
});

test("[HT91] a long answer that waited for a rule has its length, and no body to HEAD", async () => {
  const inserts = times(300, async (n) => ({ id: `long-${n}-é`, n }));
  expect((await platform.service.post(`${path("read")}/batch`, { inserts: await inserts })).status).toBe(200);
  const list = `${path("read")}?limit=300`;
  const answer = await platform.fetch(list);
  const bytes = await answer.bytes();
  expect(bytes.length).toBeGreaterThan(20_000);
  expect(answer.headers.get("content-length")).toBe(String(bytes.length));
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(JSON.parse(new TextDecoder().decode(bytes)).items).toHaveLength(300);
  const head = await platform.fetch(list, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, String(bytes.length), ""]);
});
