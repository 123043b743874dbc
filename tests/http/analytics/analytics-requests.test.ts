import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

/** Rows that were written without histograms. */
const NONE = { p50: 0, p95: 0, p99: 0, errors4xx: 0 };

const HOUR_MS = 3_600_000;
const CONFIG = `{
  databases: { shared: { tables: { posts: { access: { read: true } } } } },
  kv: { cache: {} },
}`;

interface Share {
  label: string;
  count: number;
  percentage: number;
  avgLatency: number;
  p50: number;
  p95: number;
  p99: number;
  errorRate: number;
  errors4xx: number;
}
interface Point {
  timestamp: number;
  requests: number;
  errors: number;
  avgLatency: number;
  p50: number;
  p95: number;
  p99: number;
  errors4xx: number;
  uniqueUsers: number;
}
interface Overview {
  timeSeries: Point[];
  summary: Omit<Point, "timestamp" | "requests" | "errors"> & { totalRequests: number; totalErrors: number };
  breakdown: Share[];
  topItems: Share[];
}

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const query = async (parameters: Record<string, string | number> = {}): Promise<Overview> => {
  const answer = await platform.service.get<Overview>("/api/analytics/query", { query: parameters });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const database = (from: TestPlatform = platform) => new Database(join(from.dataDirectory, "analytics.db"));

test("[AN8] [AN10] a report includes the latest requests, by pattern, without ids, queries or addresses", async () => {
  for (const id of ["private-id-1", "private-id-2"]) {
    await user.get(`/api/db/shared/tables/posts/${id}?fields=id&note=private-query`);
  }
  await platform.get("/nowhere/private-path");
  await platform.head("/api/health");
  await platform.fetch("/api/health", { method: "DELETE" });

  const { topItems } = await query();
  const counts = Object.fromEntries(topItems.map(({ label, count }) => [label, count]));
  expect(counts).toMatchObject({
    "GET /api/db/:namespace/tables/:table/:id": 2,
    "POST /api/auth/signin": 1,
    "GET (none)": 1,
    "DELETE (none)": 1,
    "HEAD /api/health": 1,
  });
  expect((await query()).topItems.map(({ label }) => label)).toContain("GET /api/analytics/query");

  using file = database();
  const stored = JSON.stringify([
    file.query("SELECT * FROM endpoints").all(),
    file.query("SELECT * FROM requests").all(),
  ]);
  expect(stored).not.toMatch(/private|127\.0\.0\.1/);
  expect(stored).toContain(user.id);
});

test("[AN9] requests of one second with the same endpoint, status and user share a row", async () => {
  const asked = 200;
  for (let at = 0; at < asked; at++) await user.get("/api/config");
  const { topItems } = await query();
  expect(topItems.find(({ label }) => label === "GET /api/config")?.count).toBe(asked);
  using file = database();
  const [rows] = file
    .query<{ seconds: number; rows: number; requests: number }, []>(
      `SELECT count(DISTINCT second) AS seconds, count(*) AS rows, sum(requests) AS requests FROM requests
       WHERE endpoint = (SELECT id FROM endpoints WHERE route = '/api/config')`,
    )
    .all();
  expect(rows?.requests).toBe(asked);
  expect(rows?.rows).toBe(rows?.seconds ?? 0);
});

test("[AN9] requests are written without a reader, and survive a killed process", async () => {
  await platform.get("/api/kv/cache");
  const isWritten = (): boolean => {
    using file = database();
    return (
      file.query("SELECT 1 FROM endpoints WHERE category = 'kv' OR route = '(none)' AND method = 'GET'").get() !== null
    );
  };
  for (let turn = 0; turn < 500 && !isWritten(); turn++) await Bun.sleep(20);
  await platform.kill("SIGKILL");
  await platform.restart();
  expect((await query()).topItems.map(({ label }) => label)).toContain("GET (none)");
});

/** An hour before today that is still within the retention. */
const start = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 40 * 24 * HOUR_MS;
const range = { start, end: start + 3 * HOUR_MS };

type Row = [offsetS: number, endpoint: number, status: number, user: string, requests: number, durationUs: number];

/** Writes rows into the file of the stopped server, and starts it again. */
async function write(rows: readonly Row[]): Promise<void> {
  await platform.kill("SIGTERM");
  {
    using file = database();
    file.run(`INSERT INTO endpoints (id, method, route, category) VALUES
      (901, 'GET', '/api/db/:one', 'db'), (902, 'POST', '/api/db/:two', 'db'), (903, 'POST', '/api/kv/:three', 'kv')`);
    const insert = file.query("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)");
    for (const [offsetS, ...row] of rows) insert.run(start / 1000 + offsetS, ...row);
  }
  await platform.restart();
}

test("[AN10] [AN11] [AN12] [AN16] counts, errors, latency and users, each once", async () => {
  await write([
    [0, 901, 200, "ann", 2, 3_000],
    [3599, 901, 503, "ann", 1, 9_000],
    [3599, 902, 404, "bob", 1, 1_000],
    [7200, 903, 200, "", 1, 500],
    [7200, 901, 200, "ann", 1, 500],
    [10_800, 901, 200, "late", 50, 1],
  ]);
  const overview = await query(range);
  expect(overview).toEqual({
    timeSeries: [
      { timestamp: start, requests: 4, errors: 1, avgLatency: 3.25, ...NONE, errors4xx: 1, uniqueUsers: 2 },
      { timestamp: start + HOUR_MS, requests: 0, errors: 0, avgLatency: 0, ...NONE, uniqueUsers: 0 },
      { timestamp: start + 2 * HOUR_MS, requests: 2, errors: 0, avgLatency: 0.5, ...NONE, uniqueUsers: 1 },
    ],
    summary: { totalRequests: 6, totalErrors: 1, avgLatency: 2.33, ...NONE, errors4xx: 1, uniqueUsers: 2 },
    breakdown: [
      { label: "db", count: 5, percentage: 83.33, avgLatency: 2.7, ...NONE, errors4xx: 1, errorRate: 20 },
      { label: "kv", count: 1, percentage: 16.67, avgLatency: 0.5, ...NONE, errorRate: 0 },
    ],
    topItems: [
      { label: "GET /api/db/:one", count: 4, percentage: 66.67, avgLatency: 3.13, ...NONE, errorRate: 25 },
      { label: "POST /api/db/:two", count: 1, percentage: 16.67, avgLatency: 1, ...NONE, errors4xx: 1, errorRate: 0 },
      { label: "POST /api/kv/:three", count: 1, percentage: 16.66, avgLatency: 0.5, ...NONE, errorRate: 0 },
    ],
  });
  expect(await query({ ...range, metric: "timeSeries" })).toEqual({ timeSeries: overview.timeSeries } as never);
  expect(await query({ ...range, metric: "breakdown" })).toEqual({ breakdown: overview.breakdown } as never);
  expect(await query({ ...range, metric: "topEndpoints" })).toEqual({ topItems: overview.topItems } as never);

  const cut = await query({ start: start + 1000, end: start + 3_599_000 });
  expect(cut.summary).toEqual({ totalRequests: 0, totalErrors: 0, avgLatency: 0, ...NONE, uniqueUsers: 0 });
  expect([cut.breakdown, cut.topItems, cut.timeSeries.length]).toEqual([[], [], 1]);
});

test("[AN13] categories are selected and excluded", async () => {
  const requests = async (parameters: Record<string, string>) =>
    (await query({ ...range, ...parameters })).summary.totalRequests;
  expect(await requests({ category: "db" })).toBe(5);
  expect(await requests({ category: "kv, db" })).toBe(6);
  expect(await requests({ excludeCategory: "db" })).toBe(1);
  expect(await requests({ category: "db", excludeCategory: "db,kv" })).toBe(0);
  expect((await query({ ...range, category: "kv" })).topItems.map(({ percentage }) => percentage)).toEqual([100]);
  for (const name of ["category", "excludeCategory"]) {
    const answer = await platform.service.get<ErrorAnswer>(`/api/analytics/query?${name}=nonsense`);
    expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, [name]]);
  }
});

test("[AN18] the server answers while a long query runs", async () => {
  await platform.kill("SIGTERM");
  {
    using file = database();
    file.run(
      `INSERT INTO requests WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
       SELECT CAST(strftime('%s', 'now') AS INTEGER) - i * 15, 901, 200, 'user' || (i * 7919 % 5000), 1, 1000 FROM n`,
    );
  }
  await platform.restart();
  let isOver = false;
  const long = query({ range: "90d", groupBy: "minute" }).finally(() => {
    isOver = true;
  });
  let answered = 0;
  while (!isOver) {
    if ((await platform.get("/api/health")).status === 200) answered += 1;
  }
  expect((await long).timeSeries.length).toBeGreaterThanOrEqual(129_600);
  expect(answered).toBeGreaterThan(5);
});

test("[AN8] nothing is recorded when the log is disabled", async () => {
  const silent = await testPlatform({ config: `{ analytics: { requestLog: false } }` });
  await silent.get("/api/health");
  await silent.post("/api/analytics/track", { events: [{ name: "kept" }] });
  const { body } = await silent.service.get<Overview>("/api/analytics/query");
  expect(body.summary.totalRequests).toBe(0);
  expect((await silent.service.get("/api/analytics/events?metric=count")).body).toMatchObject({ totalEvents: 1 });
  using file = database(silent);
  expect(file.query("SELECT * FROM endpoints").all()).toEqual([]);
  await silent.stop();
});
