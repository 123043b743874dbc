import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settle, type TestClock, testClock } from "../../../../tests/support/clock.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { Foreground } from "../../../kernel/observing/foreground.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../kernel/time/duration.ts";
import { createStorageEngine, type StorageEngine } from "../../db/index.ts";
import { createJobsArea, type JobsArea } from "../index.ts";

const GIVE_UP_MS = 10_000;
let directory = "";
let clock: TestClock;
/** Offset of the machine's clock; timers do not follow it. */
let aheadMs = 0;
let engine: StorageEngine;
let area: JobsArea;
let runs: string[] = [];
let log: string[] = [];

async function start(
  schedule: string,
  options: { catchUp?: boolean; isDrill?: boolean; run?: () => unknown; timezone?: string } = {},
): Promise<void> {
  const { catchUp = false, isDrill = false, run = () => {}, timezone = "UTC" } = options;
  const machine: Clock = { now: () => clock.now() + aheadMs, after: clock.after };
  engine = createStorageEngine({ clock });
  area = createJobsArea({
    engine,
    foreground: new Foreground(),
    dataDirectory: directory,
    secrets: { jwtSecret: "s".repeat(32) },
    isDrill,
    clock: machine,
    ids: systemIds,
    logger: { info() {}, warn: (message) => void log.push(message), error: (message) => void log.push(message) },
    jobs: {},
    cron: {
      nightly: {
        schedule,
        timezone,
        catchUp,
        run: ({ scheduledAt }) => {
          runs.push(scheduledAt);
          return run();
        },
      },
    },
    audit: async () => {},
    app: () => ({}) as never,
  });
  await area.start();
}
async function stop(): Promise<void> {
  const stopped = area.stop();
  await settle();
  await clock.advanceAsync(5_000);
  await stopped;
  await engine.stop();
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "cron-"));
  clock = testClock();
  aheadMs = 0;
  runs = [];
  log = [];
});
afterEach(async () => {
  await stop();
  rmSync(directory, { recursive: true });
});

async function until(isSo: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  while (!isSo()) {
    if (performance.now() > giveUpAt)
      throw new Error(`not so in time; runs: ${runs.join(" ")}; log: ${log.join(", ")}`);
    await settle();
  }
}

test("[JB40] a schedule runs at each of its times", async () => {
  await start("0 * * * *");
  for (let hour = 1; hour <= 3; hour++) {
    await clock.advanceAsync(HOUR_MS);
    await until(() => runs.length === hour);
  }
  expect(runs).toEqual([1, 2, 3].map((hour) => `2026-01-01T0${hour}:00:00.000Z`));
});

test("[JB40] a schedule follows a clock that was years ahead, and one that is set back a little runs nothing twice", async () => {
  aheadMs = 1_000 * DAY_MS;
  await start("0 * * * *");
  await clock.advanceAsync(HOUR_MS);
  await until(() => runs.length === 1);
  aheadMs = 0;
  await clock.advanceAsync(HOUR_MS);
  await until(() => runs.length === 2);
  aheadMs = -30 * MINUTE_MS;
  await clock.advanceAsync(HOUR_MS + 30 * MINUTE_MS);
  await until(() => runs.length === 3);
  expect(runs.slice(1)).toEqual(["2026-01-01T02:00:00.000Z", "2026-01-01T03:00:00.000Z"]);
});

test("[JB41] a time is skipped while the previous run has not ended", async () => {
  const gate = Promise.withResolvers<void>();
  await start("*/20 * * * *", { run: () => gate.promise });
  await clock.advanceAsync(20 * MINUTE_MS);
  await until(() => runs.length === 1);
  expect(log).toEqual([]);
  await clock.advanceAsync(20 * MINUTE_MS);
  await until(() => log.some((message) => message.startsWith("jobs: a scheduled run is skipped")));
  gate.resolve();
  await until(() => area.load.every(({ running }) => running === 0));
  await clock.advanceAsync(20 * MINUTE_MS);
  await until(() => runs.length === 2);
  expect(runs[1]).toBe("2026-01-01T01:00:00.000Z");
});

test("[JB43] with catchUp one run makes up for all missed ones; without, they are gone", async () => {
  await start("0 * * * *", { catchUp: true });
  await clock.advanceAsync(HOUR_MS);
  await until(() => runs.length === 1);
  await stop();
  await clock.advanceAsync(5 * HOUR_MS + 10 * MINUTE_MS);
  await start("0 * * * *", { catchUp: true });
  await until(() => runs.length === 2);
  expect(runs[1]).toBe("2026-01-01T06:00:00.000Z");
  await stop();
  await start("0 * * * *", { catchUp: true });
  await settle();
  expect(runs.length).toBe(2);
  await stop();
  await clock.advanceAsync(3 * HOUR_MS);
  await start("0 * * * *");
  await clock.advanceAsync(30 * MINUTE_MS);
  expect(runs.length).toBe(2);
  await clock.advanceAsync(30 * MINUTE_MS);
  await until(() => runs.length === 3);
});

test("[JB43] the first start of a schedule has missed nothing, and the next one knows", async () => {
  await start("@daily", { catchUp: true });
  await settle();
  expect(runs).toEqual([]);
  await stop();
  await clock.advanceAsync(DAY_MS);
  await start("@daily", { catchUp: true });
  await until(() => runs.length === 1);
  expect(runs).toEqual(["2026-01-02T00:00:00.000Z"]);
});

test("[JB44] in a drill no schedule runs", async () => {
  await start("* * * * *", { isDrill: true, catchUp: true });
  await clock.advanceAsync(HOUR_MS);
  expect([runs, area.load]).toEqual([[], []]);
});
