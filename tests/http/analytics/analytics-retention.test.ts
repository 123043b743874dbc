import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

/** Rows that were written without histograms. */
const NONE = { p50: 0, p95: 0, p99: 0, errors4xx: 0 };

const DAY_MS = 24 * 3_600_000;
const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const oldDay = today - 120 * DAY_MS;
const olderDay = today - 121 * DAY_MS;
const keptDay = today - 80 * DAY_MS;

let platform: TestPlatform;
const database = () => new Database(join(platform.dataDirectory, "analytics.db"));

beforeAll(async () => {
  platform = await testPlatform({ config: {} });
  await platform.kill("SIGTERM");
  {
    using file = database();
    const event = file.query("INSERT INTO events (timestamp, name, user_id, properties) VALUES (?, ?, ?, '{}')");
    for (const day of [olderDay, oldDay, keptDay]) {
      for (const user of ["ann", "ann", "bob", null]) event.run(day + 1000, "signup", user);
      event.run(day + DAY_MS - 1, "login", "ann");
    }
    file.run(`INSERT INTO endpoints (id, method, route, category) VALUES
      (901, 'GET', '/api/db/:one', 'db'), (902, 'POST', '/api/kv/:two', 'kv')`);
    const request = file.query("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)");
    for (const day of [olderDay, oldDay, keptDay]) {
      request.run(day / 1000, 901, 200, "ann", 3, 3000);
      request.run(day / 1000 + 1, 901, 500, "", 1, 1000);
      request.run((day + DAY_MS) / 1000 - 1, 902, 200, "bob", 1, 6000);
    }
  }
  await platform.restart();
  const rowCount = () => {
    using file = database();
    const [row] = file
      .query<{ count: number }, [number, number]>(
        `SELECT (SELECT count(*) FROM events WHERE timestamp < ?1)
           + (SELECT count(*) FROM requests WHERE second < ?2) AS count`,
      )
      .all(keptDay, keptDay / 1000);
    return row?.count;
  };
  for (let turn = 0; turn < 500 && rowCount() !== 0; turn++) await Bun.sleep(50);
});
afterAll(() => platform.stop());

const get = async (path: string, query: Record<string, string | number>) => {
  const answer = await platform.service.get(`/api/analytics/${path}`, { query });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const range = { start: olderDay, end: keptDay + DAY_MS };

test("[AN19] days older than 90 days are summarised, later days are rows", () => {
  using file = database();
  expect(
    file.query("SELECT DISTINCT timestamp / 86400000 * 86400000 AS day FROM events ORDER BY day").values(),
  ).toEqual([[keptDay]]);
  expect(file.query("SELECT day, name, events, users FROM event_days ORDER BY day, name").values()).toEqual(
    [olderDay, oldDay].flatMap((day) => [
      [day, "", 5, 2],
      [day, "login", 1, 1],
      [day, "signup", 4, 2],
    ]),
  );
  expect(
    file
      .query("SELECT category, endpoint, requests, errors, duration_us, users FROM request_days WHERE day = ?")
      .values(oldDay),
  ).toEqual([
    ["", 0, 5, 1, 10_000, 2],
    ["db", 0, 4, 1, 4000, 1],
    ["db", 901, 4, 1, 4000, 1],
    ["kv", 0, 1, 0, 6000, 1],
    ["kv", 902, 1, 0, 6000, 1],
  ]);
});

test("[AN20] events: each day counts once, from its summary or its rows", async () => {
  // Ann and Bob once on each of the two summarised days, and once more in the rows.
  expect(await get("events", { metric: "count", ...range })).toEqual({ totalEvents: 15, uniqueUsers: 6 });
  expect(await get("events", { metric: "count", event: "login", ...range })).toEqual({
    totalEvents: 3,
    uniqueUsers: 3,
  });
  expect(await get("events", { metric: "count", userId: "ann", ...range })).toEqual({ totalEvents: 3, uniqueUsers: 1 });
  expect(await get("events", { metric: "topEvents", ...range })).toEqual({
    topEvents: [
      { eventName: "signup", count: 12, uniqueUsers: 6 },
      { eventName: "login", count: 3, uniqueUsers: 3 },
    ],
  });
  // No event has an empty name.
  expect(await get("events", { metric: "count", event: "", ...range })).toEqual({ totalEvents: 0, uniqueUsers: 0 });
  expect(await get("events", { metric: "topEvents", event: "", ...range })).toEqual({ topEvents: [] });
  const series = async (query: JsonObject) =>
    (await get("events", { metric: "timeSeries", ...range, ...query } as never))["timeSeries"] as never[];
  const days = await series({ groupBy: "day" });
  const filled = days.filter(({ count }) => count > 0);
  expect(filled).toEqual([olderDay, oldDay, keptDay].map((timestamp) => ({ timestamp, count: 5 })) as never);
  expect(days).toHaveLength(42);
  // A summarised day counts at its beginning.
  const hours = await series({ start: oldDay, end: oldDay + DAY_MS });
  expect(hours.map(({ count }) => count)).toEqual([5, ...Array.from({ length: 23 }, () => 0)] as never);
  expect(await get("events", { metric: "list", ...range })).toMatchObject({ hasMore: false });
  expect(((await get("events", range))["events"] as unknown[]).length).toBe(5);
});

test("[AN20] requests: each day counts once, from its summary or its rows", async () => {
  const overview = await get("query", { ...range, groupBy: "day" });
  expect(overview["summary"]).toEqual({ totalRequests: 15, totalErrors: 3, avgLatency: 2, ...NONE, uniqueUsers: 6 });
  const share = { percentage: 80, avgLatency: 1, ...NONE, errorRate: 25 };
  expect(overview["breakdown"]).toEqual([
    { ...share, label: "db", count: 12 },
    { label: "kv", count: 3, percentage: 20, avgLatency: 6, ...NONE, errorRate: 0 },
  ]);
  expect((overview["topItems"] as JsonObject[])[0]).toEqual({ ...share, label: "GET /api/db/:one", count: 12 });
  const series = overview["timeSeries"] as never[];
  expect(series.filter(({ requests }) => requests > 0)).toEqual(
    [olderDay, oldDay, keptDay].map((timestamp) => ({
      timestamp,
      requests: 5,
      errors: 1,
      avgLatency: 2,
      ...NONE,
      uniqueUsers: 2,
    })) as never,
  );
  const filtered = await get("query", { ...range, category: "kv", groupBy: "day" });
  expect(filtered["summary"]).toEqual({ totalRequests: 3, totalErrors: 0, avgLatency: 6, ...NONE, uniqueUsers: 3 });
  expect(filtered["topItems"]).toHaveLength(1);
});
