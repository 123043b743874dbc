import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  settle,
  type TestClock,
  temporaryDirectory,
  testClock,
  testPlatform,
} from "../../../../../tests/support/index.ts";
import { startS3Server } from "../../../../../tests/support/s3-server.ts";
import { systemIds } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { Foreground } from "../../../../kernel/observing/foreground.ts";
import { DAY_MS, HOUR_MS } from "../../../../kernel/time/duration.ts";
import type { BackupsPlace } from "../../../config/types.ts";
import { createStorageEngine } from "../../../db/index.ts";
import { createJobsArea } from "../../../jobs/index.ts";
import { restoreBackup } from "../archive/restore.ts";
import { MARKER } from "../destination/destinations.ts";
import { createBackupsArea } from "../index.ts";
import type { BackupJob, BackupResult } from "./job.ts";
import type { RunBackupJob } from "./job-process.ts";

const START = Date.UTC(2026, 0, 31, 2, 30);
const WAIT_FOR_PROCESS_MS = 20_000;
let dataDirectory: string;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  const platform = await testPlatform({ config: { kv: { cache: {} } } });
  await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
  await platform.kill("SIGTERM");
  dataDirectory = platform.dataDirectory;
});
afterAll(() => Promise.all(stops.map((stop) => stop())));

interface Entry {
  level: string;
  message: string;
  facts: Record<string, unknown>;
}

/** Creates an area at START, and collects what it logs. */
function schedule(
  to: BackupsPlace,
  options: {
    schedule?: string;
    keep?: number;
    isDrill?: boolean;
    takeOver?: boolean;
    from?: string;
    run?: RunBackupJob;
  } = {},
) {
  const { schedule: expression = "0 * * * *", keep = 2, isDrill = false, takeOver = false, run } = options;
  const clock: TestClock = testClock(START);
  const log: Entry[] = [];
  const at =
    (level: string) =>
    (message: string, facts: Record<string, unknown> = {}) =>
      void log.push({ level, message, facts });
  const logger: Logger = { info: at("info"), warn: at("warn"), error: at("error") };
  const config = { schedule: expression, keep, to };
  const engine = createStorageEngine({ clock });
  // Its own entries about tries are not the area's.
  const ofJobs: Logger = { info() {}, warn: logSkipped(logger), error() {} };
  const jobsDirectory = temporaryDirectory();
  const jobs = createJobsArea({
    engine,
    foreground: new Foreground(),
    dataDirectory: jobsDirectory,
    secrets: { jwtSecret: "s".repeat(32) },
    isDrill,
    clock,
    ids: systemIds,
    logger: ofJobs,
    jobs: {},
    cron: {},
    audit: async () => {},
    app: () => {
      throw new Error("not used");
    },
  });
  const area = createBackupsArea({
    isContinuous: false,
    config,
    schedules: jobs.schedules,
    queue: jobs.queue,
    principals: { requireUsable() {} },
    audit: { record: async () => {} },
    isDrill,
    takeOver,
    dataDirectory: options.from ?? dataDirectory,
    clock,
    ids: systemIds,
    logger,
    ...(run === undefined ? {} : { run }),
  });
  void jobs.start();
  const stop = async (): Promise<void> => {
    await jobs.stop();
    await engine.stop();
  };
  stops.push(stop);
  return { area, clock, log, stop };
}

const logSkipped =
  (logger: Logger): Logger["warn"] =>
  (message) => {
    if (message.includes("skipped")) logger.warn(message);
  };

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + WAIT_FOR_PROCESS_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error("timed out");
    await Bun.sleep(10);
  }
}

const RESULT: BackupResult = {
  name: "platform-x",
  fileCount: 1,
  contentBytes: 1,
  sizeBytes: 7,
  verifiedAt: null,
  deleted: [],
  rotationProblem: null,
};
const old = (day: number) => `platform-2001-01-0${day}T02-00-00Z.tar.zst`;

test("[BK101] the last backup is the newest at the destination, until a new one succeeds", async () => {
  const folder = temporaryDirectory();
  for (const day of [1, 3, 2]) writeFileSync(join(folder, old(day)), "x".repeat(day));
  for (const name of ["platform-9999.tar.zst", "notes.txt"]) writeFileSync(join(folder, name), "other");
  const { area, clock } = schedule({ folder }, { run: async () => RESULT });
  await until(() => area.load.lastBackupAt !== 0);
  expect(area.load).toMatchObject({
    lastBackupAt: Date.parse("2001-01-03T02:00:00Z"),
    lastBackupBytes: 3,
    backupsMade: 0,
  });
  await clock.advanceAsync(HOUR_MS / 2);
  await until(() => area.load.backupsMade === 1);
  expect(area.load).toMatchObject({ lastBackupAt: clock.now(), lastBackupBytes: 7, backupsMade: 1 });
});

test("[BK101] a missing or failing destination does not prevent the start", async () => {
  const folder = join(temporaryDirectory(), "later");
  const { area, clock, log } = schedule({ folder }, { run: async () => RESULT });
  await clock.advanceAsync(HOUR_MS / 2);
  await until(() => log.length > 0);
  expect([area.load.backupsMade, log.map(({ level }) => level)]).toEqual([1, ["info"]]);
  const s3 = { endpoint: "http://127.0.0.1:1", bucket: "b", accessKeyId: "a", secretAccessKey: "s" };
  const remote = schedule({ s3 }, { run: async () => RESULT });
  await remote.clock.advanceAsync(HOUR_MS / 2);
  await until(() => remote.log.length > 0);
  expect([remote.area.load.backupsMade, remote.log.map(({ level }) => level)]).toEqual([1, ["info"]]);
});

test("[BK100] a drill makes no backups", async () => {
  const jobs: BackupJob[] = [];
  const run: RunBackupJob = async (job) => {
    jobs.push(job);
    return RESULT;
  };
  const { clock } = schedule({ folder: temporaryDirectory() }, { isDrill: true, run });
  await clock.advanceAsync(3 * HOUR_MS);
  expect([jobs, clock.waiting]).toEqual([[], 0]);
});

test("[BK20] a backup is made at each time of the schedule, in UTC, also after more than a month", async () => {
  const jobs: BackupJob[] = [];
  const folder = temporaryDirectory();
  const { area, clock } = schedule(
    { folder },
    {
      schedule: "0 3 1 * *",
      run: async (job) => {
        jobs.push(job);
        return RESULT;
      },
    },
  );
  await clock.advanceAsync(24.4 * HOUR_MS);
  expect(jobs).toEqual([]);
  await clock.advanceAsync(0.1 * HOUR_MS);
  await until(() => area.load.backupsMade === 1);
  await clock.advanceAsync(0.1 * HOUR_MS);
  expect(jobs).toMatchObject([{ dataDirectory, owner: { directory: dataDirectory }, keep: 2, to: { folder } }]);
  expect(area.load).toMatchObject({ backupsMade: 1, lastBackupAt: START + 24.5 * HOUR_MS, lastBackupBytes: 7 });
  await clock.advanceAsync(28 * DAY_MS - 0.2 * HOUR_MS);
  expect(jobs.length).toBe(1);
  await clock.advanceAsync(0.2 * HOUR_MS);
  await until(() => jobs.length === 2);
});

test("[BK23] while a backup runs the next one is skipped with a warning", async () => {
  let count = 0;
  const { promise, resolve } = Promise.withResolvers<BackupResult>();
  const { clock, log } = schedule(
    { folder: temporaryDirectory() },
    { run: () => (count++ === 0 ? promise : Promise.resolve(RESULT)) },
  );
  clock.advance(HOUR_MS / 2);
  await until(() => count === 1);
  clock.advance(HOUR_MS);
  await until(() => log.length === 1);
  expect([count, log[0]?.level]).toEqual([1, "warn"]);
  resolve(RESULT);
  await until(() => log.some(({ level }) => level === "info"));
  await settle();
  clock.advance(HOUR_MS);
  await until(() => count === 2);
});

test("[BK26] a backup that does not end is overdue when two others have been due, until one succeeds", async () => {
  const gate = Promise.withResolvers<BackupResult>();
  const { area, clock } = schedule({ folder: temporaryDirectory() }, { run: () => gate.promise });
  const overdue = [area.isOverdue()];
  for (let hour = 0; hour < 3; hour++) {
    await clock.advanceAsync(HOUR_MS);
    overdue.push(area.isOverdue());
  }
  expect(overdue).toEqual([false, false, true, true]);
  gate.resolve(RESULT);
  await until(() => area.load.backupsMade === 1);
  expect(area.isOverdue()).toBe(false);
  const drill = schedule({ folder: temporaryDirectory() }, { isDrill: true, run: () => gate.promise });
  await drill.clock.advanceAsync(3 * HOUR_MS);
  expect(drill.area.isOverdue()).toBe(false);
});

test("[BK22] a failure is logged with its reason, and the next backup tries again", async () => {
  const folder = join(temporaryDirectory(), "backups");
  writeFileSync(folder, "a file is in the way");
  const { area, clock, log } = schedule({ folder });
  clock.advance(HOUR_MS / 2);
  await until(() => log.length === 1);
  expect(log[0]).toMatchObject({ level: "error", message: expect.stringContaining("failed") });
  expect(String(log[0]?.facts["reason"])).toContain("backups");
  expect(area.load).toMatchObject({ backupsMade: 0, backupsFailed: 1 });
  clock.advance(HOUR_MS);
  await until(() => log.length === 2);
  expect(area.load).toMatchObject({ backupsFailed: 2 });
});

test("[BK20][BK21] a folder keeps the newest backups and all other files", async () => {
  const folder = join(temporaryDirectory(), "new/backups");
  mkdirSync(folder, { recursive: true });
  for (const name of [old(1), old(2), old(3), "mine.tar.zst", "platform-mine.tar.zst"])
    writeFileSync(join(folder, name), "");
  mkdirSync(join(folder, `${old(4)}.partial`));
  const { area, clock, log } = schedule({ folder });
  clock.advance(HOUR_MS / 2);
  await until(() => log.length === 1);
  expect(log[0]).toMatchObject({ level: "info", facts: { deleted: [old(1), old(2)] } });
  const name = String(log[0]?.facts["name"]);
  expect(readdirSync(folder).sort()).toEqual([MARKER, "mine.tar.zst", old(3), name, "platform-mine.tar.zst"]);
  expect(area.load.lastBackupBytes).toBe(readFileSync(join(folder, name)).byteLength);
  const restored = join(folder, "data");
  const { signal } = new AbortController();
  expect(
    (await restoreBackup({ file: join(folder, name), dataDirectory: restored, signal })).fileCount,
  ).toBeGreaterThan(2);
});

test("[BK24] an object store keeps the newest backups; a failing store loses none", async () => {
  const s3 = startS3Server("attic");
  const objects = join(dataDirectory, "storage/objects/ab");
  mkdirSync(objects, { recursive: true });
  // Incompressible, and larger than one part.
  const noise = new Uint8Array(20_000_000);
  let state = 1;
  for (let at = 0; at < noise.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    noise[at] = state >>> 24;
  }
  writeFileSync(join(objects, "0193b4c2-1111-7222-8333-4444555566ab"), noise);
  const backend = { endpoint: s3.endpoint, bucket: "attic", region: "x", accessKeyId: "id", secretAccessKey: "s" };
  const client = new Bun.S3Client(backend);
  for (const name of [`server/${old(1)}`, `server/${old(2)}`, old(1), "server/mine"]) await client.write(name, "old");
  const { area, clock, log } = schedule({ s3: { ...backend, prefix: "server/" } });
  s3.failing = true;
  clock.advance(HOUR_MS / 2);
  await until(() => log.length === 1);
  expect(log[0]).toMatchObject({ level: "error", facts: { reason: expect.stringContaining("object store") } });
  expect([...s3.objects.keys()].length).toBe(4);
  s3.failing = false;
  clock.advance(HOUR_MS);
  await until(() => log.length === 2);
  expect(log[1]).toMatchObject({ level: "info", facts: { deleted: [old(1)] } });
  const name = `server/${log[1]?.facts["name"]}`;
  expect([...s3.objects.keys()].sort()).toEqual(
    [old(1), `server/${MARKER}`, "server/mine", `server/${old(2)}`, name].sort(),
  );
  expect(s3.objects.get(name)?.byteLength).toBe(area.load.lastBackupBytes);
  expect([s3.openUploads, existsSync(join(dataDirectory, "backup.partial"))]).toEqual([0, false]);
  await s3.stop();
});

test("[BK25] a stop cancels a running backup and leaves nothing of it", async () => {
  const uploading = Promise.withResolvers<void>();
  let marker: string | null = null;
  const s3 = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.url.includes("list-type")) return new Response("<ListBucketResult></ListBucketResult>");
      if (!request.url.includes(MARKER)) {
        if (request.method !== "GET") uploading.resolve();
        return new Promise<Response>(() => {});
      }
      if (request.method === "PUT") marker = await request.text();
      if (marker !== null) return new Response(marker);
      return new Response("<Error><Code>NoSuchKey</Code></Error>", { status: 404 });
    },
  });
  const backend = { endpoint: s3.url.origin, bucket: "b", region: "x", accessKeyId: "id", secretAccessKey: "s" };
  const { clock, log, stop } = schedule({ s3: backend });
  clock.advance(HOUR_MS / 2);
  await uploading.promise;
  expect(existsSync(join(dataDirectory, "backup.partial"))).toBe(true);
  await stop();
  expect(existsSync(join(dataDirectory, "backup.partial"))).toBe(false);
  expect(log).toEqual([]);
  await s3.stop(true);
});

test("[BK102] a destination belongs to one data directory, which deletes only its own backups; take-over moves it", async () => {
  const s3 = startS3Server("attic");
  const to = { s3: { endpoint: s3.endpoint, bucket: "attic", accessKeyId: "id", secretAccessKey: "s" } };
  const other = join(temporaryDirectory(), "other");
  cpSync(dataDirectory, other, { recursive: true });
  rmSync(join(other, "owner-id"), { force: true });
  for (const place of [{ folder: join(temporaryDirectory(), "backups") }, to]) {
    const first = schedule(place, { keep: 1 });
    first.clock.advance(HOUR_MS / 2);
    await until(() => first.log.length === 1);
    expect(first.log[0]).toMatchObject({ level: "info" });
    const second = schedule(place, { keep: 1, from: other });
    second.clock.advance(HOUR_MS / 2);
    await until(() => second.log.length === 1);
    const reason = String(second.log[0]?.facts["reason"]);
    expect([second.log[0]?.level, reason.includes(dataDirectory), reason.includes("--take-over")]).toEqual([
      "error",
      true,
      true,
    ]);
    await second.stop();

    const successor = schedule(place, { keep: 1, from: other, takeOver: true });
    const markerOf = async () =>
      "folder" in place
        ? readFileSync(join(place.folder, MARKER), "utf8")
        : Buffer.from(s3.objects.get(MARKER) ?? []).toString();
    await until(async () => (await markerOf()).includes(other));
    successor.clock.advance(HOUR_MS / 2);
    await until(() => successor.log.length === 1);
    expect(successor.log[0]).toMatchObject({ level: "info" });
    first.clock.advance(HOUR_MS);
    await until(() => first.log.length === 2);
    expect(first.log[1]).toMatchObject({ level: "error", facts: { reason: expect.stringContaining(other) } });
  }
  await s3.stop();
}, 60_000);
