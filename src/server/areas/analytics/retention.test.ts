import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { analyticsLayout } from "../../../../schema/migrations/index.ts";
import { testClock } from "../../../../tests/support/clock.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { DAY_MS } from "../../../kernel/time/duration.ts";
import { createStorageEngine, type DatabaseFile, layOut, SERVER_CALLER, type StorageEngine } from "../../db/index.ts";
import { createEventQueries } from "./event-queries.ts";
import { bucketOf, percentilesOf } from "./latency-buckets.ts";
import {
  RETENTION_MS,
  RETENTION_SLACK_MS,
  SLOW_REQUESTS_MAX,
  SUMMARY_NAMES_MAX,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
} from "./limits.ts";
import { readRequestReport } from "./request-queries.ts";
import { eventSummaries, latencySummaries, requestSummaries, startRetention } from "./retention.ts";
import { createSlowRequests } from "./slow-requests.ts";

const DAY = Date.UTC(2026, 0, 1);

let directory = "";
let engine: StorageEngine;
let file: DatabaseFile;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "analytics-retention-"));
  engine = createStorageEngine({ clock: systemClock });
  file = engine.open(join(directory, "analytics.db"), { migrate: layOut(analyticsLayout) });
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const count = (table: string): number =>
  file.sqlite.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${table}`).get()?.count ?? 0;
const addEvents = (day: number, names: number): void => {
  file.sqlite
    .query(
      `INSERT INTO events (timestamp, name, properties)
       WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1) SELECT ?1 + i, 'name' || i, '{}' FROM n`,
    )
    .run(day, names);
};

test("[AN19] a day is summarised when it is 90 days old, and its rows are removed in steps", async () => {
  const rows = SWEEP_STEP_ROWS + 20;
  addEvents(DAY, rows);
  addEvents(DAY + DAY_MS, 5);
  file.sqlite.run(`INSERT INTO requests VALUES (${DAY / 1000}, 1, 200, '', 7, 1000)`);
  const clock = testClock(DAY + DAY_MS + RETENTION_MS + RETENTION_SLACK_MS - SWEEP_FIRST_MS - 1);
  const summaries = [eventSummaries(file), requestSummaries(file), latencySummaries(file)];
  const stop = startRetention({ summaries, slowRequests: createSlowRequests(file), clock, logger: silentLogger });
  /** Waits until the running step has ended, which is when the next one is scheduled. */
  const step = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 2_000 && clock.waiting === 0; turn++) await Bun.sleep(5);
    return { rows: count("events"), days: count("event_days"), requests: count("requests") };
  };

  expect(await step(SWEEP_FIRST_MS)).toEqual({ rows: rows + 5, days: 0, requests: 1 });
  // The day was due one millisecond later; the next check comes after the interval.
  expect(await step(SWEEP_INTERVAL_MS)).toEqual({ rows: rows + 5, days: 1 + rows, requests: 1 });
  expect(count("request_days")).toBe(1);
  expect(await step(SWEEP_PAUSE_MS)).toEqual({ rows: 25, days: 1 + rows, requests: 0 });
  expect(await step(SWEEP_PAUSE_MS)).toEqual({ rows: 5, days: 1 + rows, requests: 0 });
  expect(await step(SWEEP_INTERVAL_MS)).toEqual({ rows: 5, days: 1 + rows, requests: 0 });
  await stop();
  expect(clock.waiting).toBe(0);
});

test("[AN21] rare names are part of the totals only", async () => {
  addEvents(DAY, SUMMARY_NAMES_MAX + 3);
  file.sqlite.run(`INSERT INTO events (timestamp, name, user_id, properties) VALUES (${DAY}, 'frequent', 'ann', '{}')`);
  file.sqlite.run(`INSERT INTO events (timestamp, name, user_id, properties) VALUES (${DAY}, 'frequent', 'ann', '{}')`);
  await eventSummaries(file).sumUp(DAY, new AbortController().signal);
  expect(count("event_days")).toBe(SUMMARY_NAMES_MAX + 1);
  const day = file.sqlite.query("SELECT events, users FROM event_days WHERE name = ?");
  expect(day.get("")).toEqual({ events: SUMMARY_NAMES_MAX + 5, users: 1 });
  expect(day.get("frequent")).toEqual({ events: 2, users: 1 });
});

test("[AN19] a stop cancels a running summary, which is made again later", async () => {
  addEvents(DAY, 10);
  const stopping = new AbortController();
  const sums = eventSummaries(file).sumUp(DAY, stopping.signal);
  stopping.abort(new Error("stopping"));
  await expect(sums).rejects.toThrow("stopping");
  expect(count("event_days")).toBe(0);
  await eventSummaries(file).sumUp(DAY, new AbortController().signal);
  expect(count("event_days")).toBe(11);
});

test("[AN100] rows of a day that already has a summary are counted, first as rows and later in the summary", async () => {
  addEvents(DAY, 3);
  file.sqlite.run("INSERT INTO endpoints (id, method, route, category) VALUES (1, 'GET', '/a', 'a')");
  const request = `INSERT INTO requests VALUES (${DAY / 1000}, 1, 200, 'ann', 2, 10)`;
  file.sqlite.run(request);
  const [events, requests] = [eventSummaries(file), requestSummaries(file)];
  const age = async () => {
    for (const one of [events, requests]) {
      await one.sumUp(DAY, new AbortController().signal);
      // Nothing is counted twice while the rows are still there.
      expect((await counts()).events).toBe(expected);
      while ((await one.removeSummed(2)) === 2);
    }
  };
  const range = { startMs: DAY, endMs: DAY + DAY_MS, stepMs: DAY_MS };
  const counts = async () => {
    const query = { range, steps: [], event: null, userId: null, limit: 10, after: null, metric: "count" as const };
    return { events: (await createEventQueries(file).count(query, SERVER_CALLER)).totalEvents };
  };
  let expected = 3;
  await age();
  expect(count("events") + count("requests")).toBe(0);
  // The clock was ahead, and is right again.
  addEvents(DAY, 4);
  file.sqlite.run(request);
  expected = 7;
  expect(await counts()).toEqual({ events: 7 });
  expect([await events.removeSummed(10), await requests.removeSummed(10)]).toEqual([0, 0]);
  expect(events.oldestDay()).toBe(DAY);
  await age();
  expect(await counts()).toEqual({ events: 7 });
  expect(count("events") + count("requests")).toBe(0);
  const total = file.sqlite.query("SELECT requests, users FROM request_days WHERE category = ''").get();
  expect(total).toEqual({ requests: 4, users: 2 });
});

test("[AN103] a day's histograms become one when it is summarised, and count once before, meanwhile and after", async () => {
  file.sqlite.run("INSERT INTO endpoints (id, method, route, category) VALUES (1, 'GET', '/a', 'a')");
  const firstMinute = DAY / 60_000;
  file.sqlite.run(`INSERT INTO requests VALUES (${DAY / 1_000}, 1, 404, 'ann', 100, 10)`);
  for (let minute = 0; minute < 10; minute++) {
    file.sqlite.run("INSERT INTO latencies VALUES (?, 1, ?, 10)", [
      firstMinute + minute,
      bucketOf(1_000 * (minute + 1)),
    ]);
  }
  const range = { startMs: DAY, endMs: DAY + DAY_MS, stepMs: DAY_MS };
  const report = async () => {
    const query = { metric: "overview" as const, range, categories: null };
    const { endpoints, timeSeriesJson } = await readRequestReport(file, query, SERVER_CALLER);
    const [point] = JSON.parse(timeSeriesJson) as { p50: number; p95: number; p99: number; errors4xx: number }[];
    const { p50, p95, p99 } = percentilesOf(endpoints[0]?.latencies ?? new Map());
    // SQL and this code compute the same.
    expect(point).toMatchObject({ p50, p95, p99, errors4xx: endpoints[0]?.errors4xx ?? -1 });
    return { p50, p95, p99, errors4xx: point?.errors4xx };
  };
  const before = await report();
  expect(before.errors4xx).toBe(100);
  expect(Math.abs(before.p50 - 5)).toBeLessThan(5 / 16);
  expect(Math.abs(before.p99 - 10)).toBeLessThan(10 / 16);
  const [requests, latencies] = [requestSummaries(file), latencySummaries(file)];
  for (const one of [requests, latencies]) await one.sumUp(DAY, new AbortController().signal);
  expect(await report()).toEqual(before);
  while ((await latencies.removeSummed(3)) === 3) expect(await report()).toEqual(before);
  await requests.removeSummed(10);
  expect([count("latencies"), count("latency_days")]).toEqual([0, 10]);
  expect(await report()).toEqual(before);
});

test("[AN113] slow requests are kept for 7 days, and the newest 10,000 of them", async () => {
  const slow = createSlowRequests(file);
  const insert = `INSERT INTO slow_requests (at, request) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    SELECT ?1, '{}' FROM n`;
  const now = DAY + 7 * DAY_MS;
  file.sqlite.query(insert).run(DAY - 1, 5);
  file.sqlite.query(insert).run(DAY, SLOW_REQUESTS_MAX + 7);
  const shown = await slow.page({ limit: 20_000, before: null, from: null, to: null, now }, SERVER_CALLER);
  expect(shown.requests).toHaveLength(SLOW_REQUESTS_MAX + 7);
  while (await slow.sweep(now)) expect(count("slow_requests")).toBeGreaterThan(0);
  expect(count("slow_requests")).toBe(SLOW_REQUESTS_MAX);
  for (let isMore = true; isMore; ) isMore = await slow.sweep(now + 1);
  expect(count("slow_requests")).toBe(0);
});
