import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { until } from "../../support/until.ts";

const RECORDS = 2_000;
const config = (table: string) => `{ databases: { spaces: { instance: true, access: { open: true, create: true },
  tables: { items: ${table} } } } }`;
const rules = "access: { read: true, insert: true }";
const BEFORE = config(`{ schema: { title: { type: "string" }, n: { type: "integer" } }, ${rules} }`);
/** Counts for a second or more. */
const COUNT =
  "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1500000) SELECT count(*) FROM c";
const MIGRATED =
  config(`{ schema: { title: { type: "string" }, n: { type: "integer" }, more: { type: "string", required: true, default: "yes" } },
  indexes: [{ fields: ["n"] }], fts: ["title"], ${rules},
  migrations: [{ version: 1, description: "counts", up: "UPDATE items SET n = n + 1 WHERE (${COUNT}) > 0" }] }`);
const P = (id: string) => `/api/db/spaces/${id}/tables/items`;

let platform: TestPlatform;
beforeEach(async () => {
  platform = await testPlatform({ config: BEFORE });
  const records = Array.from({ length: RECORDS }, (_, n) => ({ id: `r${n}`, title: "long ".repeat(200), n }));
  for (let at = 0; at < RECORDS; at += 500) {
    const inserts = records.slice(at, at + 500);
    expect((await platform.service.post(`${P("large")}/batch`, { inserts })).status).toBe(200);
  }
  await platform.service.post(P("small"), { id: "a", title: "x", n: 1 });
});
afterEach(() => platform.stop());

const fileOf = (id: string) => join(platform.dataDirectory, "databases", "spaces", `${id}.db`);

test("[DB310] the tables of a large instance are changed beside the server, and requests to it wait", async () => {
  await platform.restart({ config: MIGRATED });
  expect(statSync(fileOf("large")).size).toBeGreaterThan(2 * 1024 * 1024);
  let answered = 0;
  const note = <T>(answer: T): T => {
    answered += 1;
    return answer;
  };
  const waiting = [
    platform.get<{ items: unknown[] }>(P("large"), { query: { sort: "n:desc", limit: "1" } }).then(note),
    platform.get(`${P("large")}/r5`).then(note),
    platform.service.post(P("large"), { id: "new", title: "new", n: -1 }).then(note),
  ];
  for (let asked = 0; asked < 5; asked++) expect((await platform.get("/api/health")).status).toBe(200);
  expect((await platform.get(`${P("small")}/missing`)).status).toBe(404);
  expect(answered).toBe(0);
  const [list, one, insert] = await Promise.all(waiting);
  expect(list?.body).toMatchObject({ items: [{ id: `r${RECORDS - 1}`, n: RECORDS, more: "yes" }] });
  expect(one?.body).toMatchObject({ n: 6, more: "yes" });
  expect(insert?.status).toBe(201);
  const found = () => platform.get<{ total: number }>(`${P("large")}/search`, { query: { q: "new" } });
  await until("the texts are indexed", async () => (await found()).body.total === 1);
  // Not a second time.
  await platform.restart({});
  expect((await platform.get(`${P("large")}/r5`)).body).toMatchObject({ n: 6 });
});

test("[DB310] [TB60] who has lost the right to the instance by the end of the change is refused", async () => {
  const guarded = `access: { open: (_auth, id, context) => context.db("shared").table("opened").get(id) !== null }`;
  const shared = "shared: { tables: { opened: { schema: { n: { type: 'integer' } } } } }, spaces:";
  await platform.restart({
    config: MIGRATED.replace("access: { open: true, create: true }", guarded).replace("spaces:", shared),
  });
  expect((await platform.service.post("/api/db/shared/tables/opened", { id: "large" })).status).toBe(201);
  const waiting = platform.get(P("large"));
  await until("the change begins", () => existsSync(`${fileOf("large")}-wal`));
  expect((await platform.service.delete("/api/db/shared/tables/opened/large")).status).toBe(200);
  expect([401, 403]).toContain((await waiting).status);
  expect((await platform.service.get(`${P("large")}/r5`)).body).toMatchObject({ n: 6 });
});

test("[DB310] an instance that is deleted meanwhile is gone, and so is the work", async () => {
  await platform.restart({ config: MIGRATED });
  const waiting = platform.get(P("large"));
  await until("the change begins", () => existsSync(`${fileOf("large")}-wal`));
  expect((await platform.service.delete("/api/admin/instances/spaces/large")).status).toBe(200);
  expect((await waiting).status).toBe(404);
  expect(readdirSync(join(fileOf("large"), "..")).filter((name) => name.startsWith("large"))).toEqual([]);
  expect((await platform.service.post(P("large"), { id: "a", title: "again", n: 0 })).status).toBe(201);
  expect((await platform.get(`${P("large")}/a`)).body).toMatchObject({ n: 0 });
});

test("[DB310] a server that is killed meanwhile finds the file as it was", async () => {
  await platform.restart({ config: MIGRATED });
  const waiting = platform.get(P("large")).catch(() => null);
  await until("the change begins", () => existsSync(`${fileOf("large")}-wal`));
  await platform.kill();
  await waiting;
  await platform.restart({ config: BEFORE });
  expect((await platform.get(`${P("large")}/r5`)).body).toMatchObject({ id: "r5", n: 5 });
  await platform.restart({ config: MIGRATED });
  expect((await platform.get(`${P("large")}/r5`)).body).toMatchObject({ n: 6 });
});

test("[DB310] [DB162] a large instance that does not fit is 503 with the reason", async () => {
  await platform.restart({
    config: config(`{ schema: { title: { type: "string" }, n: { type: "string" } }, ${rules} }`),
  });
  for (const path of [P("large"), `${P("large")}/r1`, P("small")]) {
    const { status, body } = await platform.get<{ message: string }>(path);
    expect([status, body.message]).toEqual([
      503,
      expect.stringContaining("spaces.items.n: was integer and is now string"),
    ]);
  }
  await platform.restart({ config: BEFORE });
  expect((await platform.get(`${P("large")}/r1`)).body).toMatchObject({ n: 1 });
});
