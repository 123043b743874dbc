import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { analyticsLayout } from "../../../schema/migrations/index.ts";
import { testClock } from "../../../tests/support/clock.ts";
import { createStorageEngine, type DatabaseFile, layOut, SERVER_CALLER, type StorageEngine } from "../../db/index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { silentLogger } from "../../kernel/logger.ts";
import { DAY_MS } from "../../kernel/time/duration.ts";
import {
  RETENTION_MS,
  RETENTION_SLACK_MS,
  SUMMARY_NAMES_MAX,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
} from "../limits.ts";
import { createEventQueries } from "../queries/event-queries.ts";
import { startRetention } from "./retention.ts";
import { eventSummaries, requestSummaries } from "./summaries.ts";

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
  const summaries = [eventSummaries(file), requestSummaries(file)];
  const stop = startRetention({ summaries, clock, logger: silentLogger });
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
    const query = { range, event: null, userId: null, limit: 10, after: null, metric: "count" as const };
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
