import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settle, type TestClock, testClock } from "../../../../tests/support/clock.ts";
import { type FcmServer, startFcmServer } from "../../../../tests/support/fcm-server.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { Foreground } from "../../../kernel/observing/foreground.ts";
import { createStorageEngine, type DatabaseFile, openSystemFile, type StorageEngine } from "../../db/index.ts";
import { createJobsArea } from "../../jobs/index.ts";
import { createPushArea, type PushArea } from "./index.ts";
import { LOG_RETENTION_MS, LOGS_MAX, SENDS_AT_ONCE_MAX, SWEEP_INTERVAL_MS, SWEEP_STEP_ROWS } from "./limits.ts";
import { type NewLogEntry, PushStore } from "./store.ts";

let directory = "";
let engine: StorageEngine;
let file: DatabaseFile;
let store: PushStore;
let clock: TestClock;
let fcm: FcmServer;
let area: PushArea;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "push-"));
  engine = createStorageEngine({ clock: systemClock, ids: systemIds });
  file = openSystemFile(engine, directory);
  store = new PushStore(file);
  clock = testClock(Date.now());
  fcm = await startFcmServer();
  const { projectId, serviceAccount, endpoint, tokenEndpoint } = fcm;
  const config = { fcm: { projectId, serviceAccount, endpoint, tokenEndpoint } };
  const jobs = createJobsArea({
    engine,
    foreground: new Foreground(),
    dataDirectory: directory,
    secrets: { jwtSecret: "s".repeat(32) },
    isDrill: false,
    clock,
    ids: systemIds,
    logger: silentLogger,
    jobs: {},
    cron: {},
    audit: async () => {},
    app: () => {
      throw new Error("not used");
    },
  });
  area = await createPushArea({
    config,
    audit: async () => {},
    isDrill: false,
    queue: jobs.queue,
    file,
    clock,
    ids: systemIds,
    logger: silentLogger,
  });
});
afterEach(async () => {
  await fcm.stop();
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const entry = (id: string, timestamp: number): NewLogEntry => ({
  id,
  userId: null,
  status: "sent",
  platform: "android",
  token: "t",
  title: "a",
  body: "b",
  error: null,
  timestamp,
});
const rowCount = () => file.sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM push_logs").get()?.count;

test("[PU34] at most a thousand requests to users and tokens run concurrently", async () => {
  const send = () => area.accessor.sendToToken("hang-token", { title: "a", body: "b" });
  const sending = Array.from({ length: SENDS_AT_ONCE_MAX }, send);
  await expect(send()).rejects.toMatchObject({ status: 503 });
  // Requests whose call has not started end at once, the others after the grace period.
  const stopped = area.stop();
  let isStopped = false;
  void stopped.then(() => {
    isStopped = true;
  });
  while (!isStopped) {
    await Bun.sleep(1);
    clock.advance(1_000);
  }
  expect((await Promise.all(sending)).every(({ failed }) => failed === 1)).toBe(true);
  await expect(send()).rejects.toMatchObject({ status: 503 });
  expect(clock.waiting).toBe(0);
});

test("[PU31] rows are removed when they are a day old, in steps", async () => {
  const now = clock.now();
  const oldCount = SWEEP_STEP_ROWS + 20;
  await store.record(Array.from({ length: oldCount }, (_, index) => entry(`old-${index}`, now - LOG_RETENTION_MS)));
  await store.record([entry("kept", now), entry("younger", now - LOG_RETENTION_MS + 2 * SWEEP_INTERVAL_MS + 1)]);
  const waitFor = async (count: number) => {
    for (let turn = 0; turn < 500 && (rowCount() !== count || clock.waiting === 0); turn++) await Bun.sleep(2);
    expect(rowCount()).toBe(count);
  };
  clock.advance(SWEEP_INTERVAL_MS);
  await waitFor(22);
  clock.advance(SWEEP_INTERVAL_MS);
  await waitFor(2);
  await settle();
  clock.advance(SWEEP_INTERVAL_MS);
  await waitFor(1);
  expect(store.logs({ userId: null, after: 0, before: 1_000_000, limit: 10 }).map(({ id }) => id)).toEqual(["kept"]);
  await area.stop();
  expect(clock.waiting).toBe(0);
});

test("[PU31] above the limit the oldest rows are removed by the next write", async () => {
  const fill = `INSERT INTO push_logs (id, status, platform, title, body, timestamp)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i, 'sent', 'web', '', '', ? FROM n`;
  await file.write((tx) => tx.query(fill).run(LOGS_MAX, clock.now()).changes);
  await store.record([entry("a", clock.now()), entry("b", clock.now())]);
  expect(rowCount()).toBe(LOGS_MAX);
  const oldest = file.sqlite.query<{ id: string }, []>("SELECT id FROM push_logs ORDER BY seq LIMIT 1").get();
  expect(oldest?.id).toBe("3");
  await area.stop();
});

test("[PU15] rows that are a day old are not shown, removed or not", async () => {
  const now = clock.now();
  await store.record([entry("old", now - LOG_RETENTION_MS), entry("new", now - LOG_RETENTION_MS + 1)]);
  const shown = store.logs({ userId: null, after: now - LOG_RETENTION_MS, before: 1_000_000, limit: 10 });
  expect(shown.map(({ id }) => id)).toEqual(["new"]);
  await area.stop();
});
