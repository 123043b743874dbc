import { Database } from "bun:sqlite";
import { join } from "node:path";
import { compare } from "../support/compare.ts";
import { CONNECTIONS, type Load, runLoad } from "../support/load.ts";
import { type Running, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds } from "../support/statistics.ts";
import { latency, rate } from "./figures.ts";

const RECORDS = 1_000;
const LOG_RATIO_MIN = 0.95;
const EVENTS_PER_REQUEST = 100;
const ROUNDS = 3;
const ROUND_S = 3;
const REQUEST_ROWS = 1_000_000;
const USERS = 5_000;
const DAYS = 90;
const QUERIES = 15;
const HEALTH_PAUSE_MS = 5;
const HEALTH_P99_MAX_MS = 20;

const config = (requestLog: boolean): string => `import { defineConfig } from "platform";

export default defineConfig({
  analytics: { requestLog: ${requestLog} },
  rateLimits: { events: { requests: 1_000_000_000, window: 60 } },
  databases: {
    shared: {
      tables: {
        posts: { schema: { title: { type: "string" } }, access: { read: true } },
        members: { schema: { title: { type: "string" } }, access: { read: (auth) => auth !== null } },
      },
    },
  },
});
`;

const percentile99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN;
const idAt = (index: number): string => `post-${String(index).padStart(4, "0")}`;

async function post(url: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response;
}

async function start(bench: Bench, name: string, requestLog: boolean): Promise<Running & { token: string }> {
  const platform = await startPlatform(bench.executable, bench.directory(name), config(requestLog));
  const inserts = Array.from({ length: 500 }, (_, index) => ({ title: `Post ${index}` }));
  for (const table of ["posts", "members"]) {
    for (let from = 0; from < RECORDS; from += inserts.length) {
      const records = inserts.map((record, index) => ({ id: idAt(from + index), ...record }));
      await post(`${platform.url}/api/db/shared/tables/${table}/batch`, { inserts: records });
    }
  }
  const signedUp = await post(`${platform.url}/api/auth/signup`, {
    ...{ email: "reader@example.com", password: "correct horse battery" },
  });
  const { accessToken } = (await signedUp.json()) as { accessToken: string };
  return { ...platform, token: accessToken };
}

/** Sends the same request to two servers of the same build, one with and one without the request log. */
async function requestLog(bench: Bench): Promise<Result[]> {
  const recording = await start(bench, "recording", true);
  const silent = await start(bench, "silent", false);
  const suffixes = Array.from({ length: RECORDS }, (_, index) => `/${idAt((index * 7919) % RECORDS)}`);
  const load = (platform: Running & { token: string }, table: "posts" | "members"): Load => ({
    ...{ url: `${platform.url}/api/db/shared/tables/${table}`, suffixes },
    headers: table === "posts" ? {} : { authorization: `Bearer ${platform.token}` },
  });
  const options = { targetRatio: LOG_RATIO_MIN };
  try {
    return [
      await compare(bench, {
        ...{ name: "GET one record with the request log, the floor is without", ...options },
        ...{ platform: load(recording, "posts"), floor: load(silent, "posts") },
      }),
      await compare(bench, {
        ...{ name: "the same by bearer token", ...options },
        ...{ platform: load(recording, "members"), floor: load(silent, "members") },
      }),
      await tracking(bench, silent),
    ];
  } finally {
    await Promise.all([recording.stop(), silent.stop()]);
  }
}

async function tracking(bench: Bench, platform: Running): Promise<Result> {
  bench.note("tracking events");
  const events = Array.from({ length: EVENTS_PER_REQUEST }, (_, index) => ({
    ...{ name: `event-${index % 20}`, properties: { plan: "pro", index } },
  }));
  const load = {
    url: `${platform.url}/api/analytics/track`,
    method: "POST" as const,
    body: JSON.stringify({ events }),
  };
  // Low concurrency: beyond what the disk takes, the server refuses requests, which is not measured here.
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await runLoad({ ...load, connections: 1 }, { seconds: ROUND_S, directory: bench.directory("load") }));
  }
  return rate(`POST track, ${EVENTS_PER_REQUEST} events a request, one client`, {
    perSecond: median(rounds.map(({ requestsPerSecond }) => requestsPerSecond)) * EVENTS_PER_REQUEST,
    ...{ unit: "events", p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)) },
    p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
  });
}

/** Writes rows like 90 days of requests into the file of a stopped server. */
function fillRequests(file: string): void {
  using database = new Database(file);
  database.run(`INSERT INTO endpoints (id, method, route, category)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
    SELECT 900 + i, 'GET', '/api/endpoint-' || i, iif(i % 3 = 0, 'kv', 'db') FROM n`);
  database
    .query(
      `INSERT INTO requests WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)
       SELECT CAST(strftime('%s', 'now') AS INTEGER) - i * ?2 / ?1, 901 + i % 30, iif(i % 50 = 0, 500, 200),
         'user-' || (i * 7919 % ?3), 1 + i % 3, 1500 FROM n`,
    )
    .run(REQUEST_ROWS, DAYS * 24 * 3600 - 60, USERS);
}

async function timed(platform: Running, query: string): Promise<number> {
  const startedAt = performance.now();
  const headers = { "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(`${platform.url}/api/analytics/query?${query}`, { headers });
  await response.text();
  if (!response.ok) throw new Error(`${query} was answered ${response.status}`);
  return performance.now() - startedAt;
}

async function queries(bench: Bench): Promise<Result[]> {
  bench.note("queries of the request log");
  const directory = bench.directory("queries");
  const empty = await startPlatform(bench.executable, directory, config(true));
  await empty.stop();
  fillRequests(join(directory, "data", "analytics.db"));
  const platform = await startPlatform(bench.executable, directory, config(true));
  try {
    const results: Result[] = [];
    for (const query of ["range=24h", "range=90d&groupBy=day", "range=90d&groupBy=minute"]) {
      const timesMs: number[] = [];
      for (let turn = 0; turn < QUERIES; turn++) timesMs.push(await timed(platform, query));
      results.push(latency(`overview, ${query}`, { p50Ms: median(timesMs), p99Ms: percentile99(timesMs) }));
    }
    return [...results, await healthBeside(platform)];
  } finally {
    await platform.stop();
  }
}

async function healthBeside(platform: Running): Promise<Result> {
  let isOver = false;
  const asking = (async () => {
    for (let turn = 0; turn < QUERIES; turn++) await timed(platform, "range=90d&groupBy=minute");
    isOver = true;
  })();
  const timesMs: number[] = [];
  while (!isOver) {
    const startedAt = performance.now();
    await (await fetch(`${platform.url}/api/health`)).text();
    timesMs.push(performance.now() - startedAt);
    await Bun.sleep(HEALTH_PAUSE_MS);
  }
  await asking;
  const [p50Ms, p99Ms] = [median(timesMs), percentile99(timesMs)];
  return {
    ...latency("GET /api/health beside the last of them", { p50Ms, p99Ms }),
    ...{ measured: milliseconds(p99Ms), target: `p99 < ${HEALTH_P99_MAX_MS} ms`, isMet: p99Ms < HEALTH_P99_MAX_MS },
  };
}

export const analytics: Section = {
  name: "analytics",
  title: "Analytics",
  about: `${CONNECTIONS} connections of wrk against two servers that differ in \`analytics.requestLog\`, in turns, five rounds of three seconds
each; medians. Queries: one client on ${REQUEST_ROWS.toLocaleString("en")} rows of the request log, spread over ${DAYS} days, 30 endpoints and ${USERS.toLocaleString("en")} users;
${QUERIES} of each.`,
  async run(bench) {
    return [...(await requestLog(bench)), ...(await queries(bench))];
  },
};
