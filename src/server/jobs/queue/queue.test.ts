import { heapStats } from "bun:jsc";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import fs, { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jobsLayout } from "../../../../schema/migrations/index.ts";
import { settle, type TestClock, testClock } from "../../../../tests/support/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { Foreground } from "../../../kernel/observing/foreground.ts";
import { DAY_MS, HOUR_MS } from "../../../kernel/time/duration.ts";
import { createStorageEngine, layOut, type StorageEngine } from "../../db/index.ts";
import { createJobsArea, FinalFailure, type JobDefinition, type JobRun, type JobsArea } from "../index.ts";
import { DATA_MAX_BYTES, FINISHED_MAX, SLEEP_MAX_MS, SWEEP_INTERVAL_MS, SWEEP_STEP_JOBS } from "../limits.ts";
import { backoffOf } from "./outcomes.ts";
import { JobStore } from "./store.ts";

const GIVE_UP_MS = 10_000;
let directory = "";
let clock: TestClock;
let engine: StorageEngine;
let area: JobsArea;
const runs: { name: string; data: JsonValue; attempt: number }[] = [];

function open(options: { isDrill?: boolean; syncFile?: Parameters<typeof createStorageEngine>[0]["syncFile"] } = {}) {
  const { isDrill = false, syncFile } = options;
  engine = createStorageEngine(syncFile === undefined ? { clock } : { clock, syncFile });
  area = createJobsArea({
    engine,
    foreground: new Foreground(),
    dataDirectory: directory,
    secrets: { jwtSecret: "s".repeat(32) },
    isDrill,
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
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "jobs-"));
  clock = testClock();
  runs.length = 0;
  open();
});
afterEach(async () => {
  await close();
  rmSync(directory, { recursive: true });
});

async function close(): Promise<void> {
  await area.stop();
  await engine.stop();
}

/** A definition that records its runs and then calls `run`. */
function noting(
  name: string,
  run: (job: JobRun) => unknown = () => {},
  options: Partial<JobDefinition> = {},
): JobDefinition {
  const noted = (job: JobRun) => {
    runs.push({ name, data: job.data, attempt: job.attempt });
    return run(job);
  };
  return { retries: 2, timeout: 60, concurrency: 2, ...options, run: noted };
}
const define = (name: string, run?: (job: JobRun) => unknown, options?: Partial<JobDefinition>) =>
  area.queue.define(name, noting(name, run, options));

async function until(isSo: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error(`not so in time; runs: ${JSON.stringify(runs)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Advances the clock in steps until the condition holds: each try and each write takes turns of the event loop. */
async function advanceUntil(isSo: () => boolean, stepMs = 1_000): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error(`not so in time; runs: ${JSON.stringify(runs)}`);
    await clock.advanceAsync(stepMs);
  }
}

interface Row {
  state: number;
  attempt: number;
  error: string | null;
  secret: Uint8Array | null;
  data: string;
}
const WAITING = 0;
const RUNNING = 2;
const DONE = 3;
const FAILED = 4;

/** Reads a job's row on another connection. */
function rowOf(id: string): Row | null {
  const file = new Database(join(directory, "jobs.db"), { readonly: true });
  try {
    return file.query<Row, [string]>("SELECT state, attempt, error, secret, data FROM jobs WHERE id = ?").get(id);
  } finally {
    file.close();
  }
}
const isIn = (id: string, state: number) => () => rowOf(id)?.state === state;
const dataOf = () => runs.map(({ data }) => data);

test("[JB1] a job runs once with its data, and is done", async () => {
  define("a");
  await area.start();
  const id = await area.queue.enqueue("a", { order: 7 });
  await until(isIn(id, DONE));
  expect(runs).toEqual([{ name: "a", data: { order: 7 }, attempt: 1 }]);
});

test("[JB1] a job that is done leaves nothing in memory", async () => {
  define("a");
  await area.start();
  const run = async (count: number): Promise<number> => {
    for (let n = 0; n < count; n++) {
      const id = await area.queue.enqueue("a", n);
      await until(isIn(id, DONE));
    }
    runs.length = 0;
    Bun.gc(true);
    return heapStats().objectTypeCounts["Array"] ?? 0;
  };
  const before = await run(50);
  expect((await run(300)) - before).toBeLessThan(100);
});

test("[JB2] a job starts at its time, and not before; jobs start in the order in which they are due", async () => {
  define("a", () => {}, { concurrency: 1 });
  await area.start();
  await area.queue.enqueue("a", "third", { at: new Date(clock.now() + 3 * HOUR_MS) });
  await area.queue.enqueue("a", "second", { at: new Date(clock.now() + 2 * HOUR_MS).toISOString() });
  await area.queue.enqueue("a", "first", { delay: 3600 });
  await clock.advanceAsync(HOUR_MS - 1);
  expect(runs).toEqual([]);
  await advanceUntil(() => runs.length === 1, 1);
  await clock.advanceAsync(HOUR_MS - 1_000);
  expect(dataOf()).toEqual(["first"]);
  await advanceUntil(() => runs.length === 3, 60_000);
  expect(dataOf()).toEqual(["first", "second", "third"]);
});

test("[JB2] options that are not valid are refused by name", async () => {
  const refusal = (options: object) =>
    area.queue.enqueue("a", null, options).then(
      () => null,
      ({ status, data, message }) => [status, Object.keys(data ?? {})[0] ?? message],
    );
  expect(await refusal({ delay: -1 })).toEqual([400, "delay"]);
  expect(await refusal({ delay: Number.NaN })).toEqual([400, "delay"]);
  expect(await refusal({ at: "tomorrow" })).toEqual([400, "at"]);
  expect(await refusal({ at: new Date(Number.NaN) })).toEqual([400, "at"]);
  expect(await refusal({ key: "" })).toEqual([400, "key"]);
  expect(await refusal({ group: "x".repeat(513) })).toEqual([400, "group"]);
  expect(await refusal({ id: 5 })).toEqual([400, "id"]);
  expect(await refusal({ delay: 1, at: new Date(0) })).toEqual([400, "Give either delay or at, not both"]);
  expect(existsSync(join(directory, "jobs.db"))).toBe(false);
});

test("[JB3] a key that waits or runs gives that job's id; a finished one does not", async () => {
  const gate = Promise.withResolvers<void>();
  define("a", () => gate.promise);
  define("b", () => gate.promise);
  await area.start();
  const first = await area.queue.enqueue("a", 1, { key: "k" });
  expect(await area.queue.enqueue("a", 2, { key: "k" })).toBe(first);
  await until(isIn(first, RUNNING));
  expect(await area.queue.enqueue("a", 3, { key: "k" })).toBe(first);
  expect(await area.queue.enqueue("b", 4, { key: "k" })).not.toBe(first);
  gate.resolve();
  await until(isIn(first, DONE));
  const second = await area.queue.enqueue("a", 5, { key: "k" });
  expect(second).not.toBe(first);
  await until(isIn(second, DONE));
  expect(dataOf()).toEqual([1, 4, 5]);
});

test("[JB3] [JB4] the same key or id many times in one turn is one job", async () => {
  define("a");
  await area.start();
  const ids = await Promise.all(Array.from({ length: 50 }, () => area.queue.enqueue("a", 1, { key: "k", delay: 9 })));
  expect(new Set(ids).size).toBe(1);
  const same = await Promise.all(Array.from({ length: 50 }, () => area.queue.enqueue("a", 2, { id: "mine" })));
  expect(new Set(same)).toEqual(new Set(["mine"]));
  await until(isIn("mine", DONE));
  expect(await area.queue.enqueue("a", 3, { id: "mine" })).toBe("mine");
  await settle();
  expect(dataOf()).toEqual([2]);
});

test("[JB5] a failed try is repeated after growing delays, and the job fails when its tries are used up", async () => {
  const times: number[] = [];
  define("a", () => {
    times.push(clock.now());
    throw new Error("no luck");
  });
  await area.start();
  const id = await area.queue.enqueue("a", null);
  await advanceUntil(isIn(id, FAILED), 100);
  expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  const [one = 0, two = 0, three = 0] = times;
  expect(two - one).toBeGreaterThanOrEqual(1_000);
  expect(two - one).toBeLessThan(2_500);
  expect(three - two).toBeGreaterThanOrEqual(2_000);
  expect(rowOf(id)?.error).toBe("no luck");
});

test("[JB5] delays double from 1 s to 1 h", () => {
  expect([backoffOf(1, 0), backoffOf(2, 0), backoffOf(6, 0), backoffOf(60, 0)]).toEqual([
    1_000, 2_000, 32_000, 1_800_000,
  ]);
  expect([backoffOf(1, 0.999), backoffOf(500, 0.9999)]).toEqual([1_999, 3_599_820]);
});

test("[JB5] a definition has its own delays, and ends a job at once", async () => {
  define(
    "a",
    ({ data }) => {
      throw data === "final" ? new FinalFailure("never") : new Error("again");
    },
    { retries: 100, backoff: ({ attempt }) => (attempt < 3 ? 60_000 : null) },
  );
  await area.start();
  const [slow, final] = await Promise.all([area.queue.enqueue("a", "slow"), area.queue.enqueue("a", "final")]);
  await until(isIn(final, FAILED));
  await until(() => rowOf(slow)?.state === WAITING);
  await advanceUntil(isIn(slow, FAILED), 10_000);
  expect(rowOf(slow)?.attempt).toBe(3);
  expect(rowOf(final)?.attempt).toBe(1);
});

test("[JB7] a try fails at its timeout: the signal is aborted, and its later end is ignored", async () => {
  const late = Promise.withResolvers<void>();
  let aborted = 0;
  define(
    "a",
    ({ signal, attempt }) => {
      signal.addEventListener("abort", () => {
        aborted += 1;
      });
      return attempt === 1 ? late.promise : undefined;
    },
    { timeout: 5 },
  );
  await area.start();
  const id = await area.queue.enqueue("a", null);
  await until(() => runs.length === 1);
  await clock.advanceAsync(5_000);
  expect(aborted).toBe(1);
  await until(() => rowOf(id)?.error === "took longer than 5 seconds");
  await advanceUntil(isIn(id, DONE));
  late.reject(new Error("too late"));
  await settle();
  expect(rowOf(id)).toMatchObject({ state: DONE, attempt: 2, error: null });
});

test("[JB8] no more jobs of a name run at once than its concurrency", async () => {
  const gates: (() => void)[] = [];
  let most = 0;
  let running = 0;
  define(
    "a",
    async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => gates.push(resolve));
      running -= 1;
    },
    { concurrency: 3 },
  );
  await area.start();
  const ids = await Promise.all(Array.from({ length: 20 }, (_, index) => area.queue.enqueue("a", index)));
  await until(() => gates.length === 3);
  await settle();
  expect(gates.length).toBe(3);
  await until(() => {
    gates.shift()?.();
    return runs.length === 20 && gates.length === 0 && running === 0;
  });
  for (const id of ids) await until(isIn(id, DONE));
  expect(most).toBe(3);
});

test("[JB8] a step starts jobs of about 4 MiB of data, and the next one goes on", async () => {
  const data = "x".repeat(DATA_MAX_BYTES - 2);
  for (let n = 0; n < 10; n += 1) await area.queue.enqueue("large", data);
  const first = Promise.withResolvers<number>();
  define(
    "large",
    () => {
      using file = new Database(join(directory, "jobs.db"), { readonly: true });
      first.resolve(Number(file.query("SELECT count(*) FROM jobs WHERE state = 2").values()[0]?.[0]));
    },
    { concurrency: 100 },
  );
  await area.start();
  expect(await first.promise).toBe(4);
  await until(() => runs.length === 10);
});

test("[JB8] a name that fills every step leaves other names their turn", async () => {
  define("many", () => {}, { concurrency: 100 });
  define("one");
  await Promise.all(Array.from({ length: 3_000 }, (_, n) => area.queue.enqueue("many", n)));
  await area.queue.enqueue("one", null);
  await area.start();
  await until(() => runs.some(({ name }) => name === "one"));
  expect(runs.findIndex(({ name }) => name === "one")).toBeLessThan(500);
});

test("[JB9] jobs of a group run in order, one at a time; a failing one holds back only its group", async () => {
  define(
    "a",
    ({ data, attempt }) => {
      if (data === "x1" && attempt < 3) throw new Error("again");
    },
    { concurrency: 10 },
  );
  await area.start();
  const jobs = ["x1", "y1", "x2", "y2", "x3", "y3"];
  const ids = await Promise.all(jobs.map((data) => area.queue.enqueue("a", data, { group: data.slice(0, 1) })));
  await until(() => runs.length === 4);
  expect(dataOf().filter((data) => data !== "x1")).toEqual(["y1", "y2", "y3"]);
  for (const id of ids) await advanceUntil(isIn(id, DONE));
  expect(dataOf().filter((data) => String(data).startsWith("x"))).toEqual(["x1", "x1", "x1", "x2", "x3"]);
});

test("[JB9] a failed job lets the next one of its group run", async () => {
  define("a", ({ data }) => {
    if (data === 1) throw new FinalFailure("no");
  });
  await area.start();
  const [one, two] = await Promise.all([1, 2].map((data) => area.queue.enqueue("a", data, { group: "g" })));
  await until(isIn(two ?? "", DONE));
  expect(rowOf(one ?? "")?.state).toBe(FAILED);
});

test("[JB10] a stop aborts the signals, keeps what ended, and runs the rest again after the next start", async () => {
  define("ends", ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())));
  define("throws", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)), {
    retries: 0,
  });
  define("hangs", () => new Promise(() => {}));
  await area.start();
  const names = ["ends", "throws", "hangs"];
  const [ends = "", throws = "", hangs = ""] = await Promise.all(names.map((name) => area.queue.enqueue(name, null)));
  await until(() => runs.length === 3);
  const stopped = area.stop();
  await settle();
  await clock.advanceAsync(5_000);
  await stopped;
  const later = await area.queue.enqueue("ends", "after the stop");
  expect([ends, throws, hangs, later].map((id) => rowOf(id)?.state)).toEqual([DONE, WAITING, WAITING, WAITING]);
  await engine.stop();

  open();
  for (const name of names) define(name);
  await area.start();
  for (const id of [throws, hangs, later]) await until(isIn(id, DONE));
  expect(rowOf(hangs)?.attempt).toBe(2);
  expect(runs.length).toBe(6);
});

test("[JB11] jobs of a name that is not defined wait, and run when it is", async () => {
  define("other");
  await area.start();
  const id = await area.queue.enqueue("gone", 1);
  const other = await area.queue.enqueue("other", 1);
  await until(isIn(other, DONE));
  expect(rowOf(id)?.state).toBe(WAITING);
  await close();
  open();
  define("gone");
  await area.start();
  await until(isIn(id, DONE));
});

test("[JB12] data is bounded; a secret is encrypted at rest, given to run, and removed when the job is done", async () => {
  const seen: (string | null)[] = [];
  const gate = Promise.withResolvers<void>();
  define("a", ({ secret }) => {
    seen.push(secret);
    return gate.promise;
  });
  await area.start();
  expect(await area.queue.enqueue("a", "x".repeat(1024 * 1024)).catch(({ status }) => status)).toBe(413);
  const id = await area.queue.enqueue("a", null, { secret: "the link" });
  await until(() => seen.length === 1);
  const { secret } = rowOf(id) ?? {};
  expect(secret?.byteLength).toBeGreaterThan(20);
  expect(Buffer.from(secret ?? []).includes("the link")).toBe(false);
  gate.resolve();
  await until(isIn(id, DONE));
  expect(seen).toEqual(["the link"]);
  expect(rowOf(id)?.secret).toBe(null);
});

test("[JB13] a job continues with the data that an earlier try saved", async () => {
  define("a", async ({ attempt, save }) => {
    if (attempt > 1) return;
    await save({ position: 40 });
    throw new Error("interrupted");
  });
  await area.start();
  const id = await area.queue.enqueue("a", { position: 0 });
  await advanceUntil(isIn(id, DONE));
  expect(dataOf()).toEqual([{ position: 0 }, { position: 40 }]);
});

test("[JB14] jobs leave the file 7 days after they are done, and 30 days after they have failed", async () => {
  define("a", ({ data }) => {
    if (data === "fails") throw new FinalFailure("no");
  });
  await area.start();
  const done = await area.queue.enqueue("a", "succeeds");
  const failed = await area.queue.enqueue("a", "fails");
  const waiting = await area.queue.enqueue("a", "later", { delay: (60 * DAY_MS) / 1_000 });
  await until(isIn(failed, FAILED));
  await until(isIn(done, DONE));
  await clock.advanceAsync(7 * DAY_MS - SWEEP_INTERVAL_MS);
  expect([done, failed].map((id) => rowOf(id) !== null)).toEqual([true, true]);
  await advanceUntil(() => rowOf(done) === null, SWEEP_INTERVAL_MS);
  expect(rowOf(failed)).not.toBe(null);
  await clock.advanceAsync(22 * DAY_MS);
  expect(rowOf(failed)).not.toBe(null);
  await advanceUntil(() => rowOf(failed) === null, HOUR_MS);
  expect(rowOf(waiting)?.state).toBe(WAITING);
  expect(FINISHED_MAX).toBe(1_000_000);
}, 60_000);

test("[JB14] a step of the sweep removes many small jobs, and a few large ones", async () => {
  const file = engine.open(join(directory, "swept.db"), { migrate: layOut(jobsLayout) });
  const store = new JobStore(file);
  const insert = `INSERT INTO jobs (id, name, state, attempt, created_at, due_at, finished_at, data) VALUES (?, 'a', 3, 1, 0, 0, ?, ?)`;
  await file.write((tx) => {
    for (let n = 0; n < 10; n++) tx.query(insert).run(`large ${n}`, n, JSON.stringify("x".repeat(DATA_MAX_BYTES - 2)));
    for (let n = 0; n < 50; n++) tx.query(insert).run(`small ${n}`, 10 + n, "null");
  });
  const kept = () => file.query<{ n: number }>("SELECT count(*) AS n FROM jobs").get()?.n;
  const step = { until: 100, limit: SWEEP_STEP_JOBS, bytesMax: 4 * DATA_MAX_BYTES };
  const seen: unknown[] = [];
  for (let isMore = true; isMore; seen.push(kept())) isMore = await store.sweep(DONE, step);
  expect(seen).toEqual([56, 52, 0]);
});

test("[JB14] where more jobs are done than are kept, those that are too old are removed all the same", async () => {
  const file = engine.open(join(directory, "surplus.db"), { migrate: layOut(jobsLayout) });
  const store = new JobStore(file);
  await file.write((tx) => {
    const insert = `INSERT INTO jobs (id, name, state, attempt, created_at, due_at, finished_at, data) VALUES (?, 'a', 3, 1, 0, 0, ?, 'null')`;
    for (let n = 1; n <= 60; n++) tx.query(insert).run(`old ${n}`, n);
    for (let n = 1; n <= 10; n++) tx.query(insert).run(`new ${n}`, 1_000 + n);
    // Pretends that there are three jobs more than the maximum.
    tx.query("INSERT INTO job_counts VALUES ('a', 0, 0, ?, 0, 0)").run(FINISHED_MAX + 3);
  });
  const step = { until: 100, limit: SWEEP_STEP_JOBS, bytesMax: DATA_MAX_BYTES };
  while (await store.sweep(DONE, step));
  expect(file.query<{ n: number }>("SELECT count(*) AS n FROM jobs").get()?.n).toBe(10);
});

test("[JB15] without jobs there is no file and no timer; with jobs that wait there is one", async () => {
  define("a");
  await area.start();
  expect([existsSync(join(directory, "jobs.db")), clock.waiting]).toEqual([false, 0]);
  for (let count = 0; count < 20; count++) await area.queue.enqueue("a", null, { delay: 3600 + count });
  await settle();
  // The timers of the sweep and of the earliest job.
  expect(clock.waiting).toBe(2);
  await clock.advanceAsync(SLEEP_MAX_MS);
  expect(clock.waiting).toBe(2);
  await area.stop();
  expect(clock.waiting).toBe(0);
});

test("[JB16] in a drill jobs are accepted, and none runs", async () => {
  await close();
  open({ isDrill: true });
  define("a");
  await area.start();
  const id = await area.queue.enqueue("a", null);
  await clock.advanceAsync(HOUR_MS);
  expect(rowOf(id)).toMatchObject({ state: WAITING, attempt: 0 });
});

test("[JB6] a try that the process did not survive counts, and is forgiven once", async () => {
  define("a", () => new Promise(() => {}), { retries: 0 });
  await area.start();
  const id = await area.queue.enqueue("a", null);
  for (const attempt of [1, 2]) {
    await advanceUntil(() => rowOf(id)?.state === RUNNING && rowOf(id)?.attempt === attempt);
    // Copies the file as a SIGKILL leaves it.
    const killed = directory;
    directory = mkdtempSync(join(tmpdir(), "jobs-"));
    for (const name of ["jobs.db", "jobs.db-wal"]) cpSync(join(killed, name), join(directory, name));
    const [oldArea, oldEngine] = [area, engine];
    const stopping = oldArea.stop();
    await settle();
    await clock.advanceAsync(5_000);
    await stopping;
    await oldEngine.stop();
    rmSync(killed, { recursive: true });
    open();
    define("a", () => new Promise(() => {}), { retries: 0 });
    await area.start();
  }
  await until(isIn(id, FAILED));
  expect(rowOf(id)).toMatchObject({ attempt: 2, error: "The server ended while the job was running" });
});

test("[JB17] while jobs.db cannot be written nothing starts; what has ended is recorded later", async () => {
  const gate = Promise.withResolvers<void>();
  define("a", () => gate.promise, { concurrency: 1 });
  await area.start();
  const [first = "", second = ""] = await Promise.all([1, 2].map((data) => area.queue.enqueue("a", data)));
  await until(isIn(first, RUNNING));
  const other = new Database(join(directory, "jobs.db"));
  other.run("BEGIN IMMEDIATE");
  gate.resolve();
  expect(
    await area.queue.enqueue("a", 3).then(
      () => "accepted",
      () => "refused",
    ),
  ).toBe("refused");
  await clock.advanceAsync(2_000);
  other.run("ROLLBACK");
  other.close();
  await advanceUntil(isIn(second, DONE));
  expect(rowOf(first)).toMatchObject({ state: DONE, attempt: 1 });
  expect(dataOf()).toEqual([1, 2]);
});

test("[JB17] a server that starts while jobs.db cannot be written runs its jobs later", async () => {
  define("a");
  await area.start();
  const id = await area.queue.enqueue("a", 1, { delay: 60 });
  await close();
  open();
  define("a");
  expect(area.queue.unfinished("a")).toBe(1);
  const other = new Database(join(directory, "jobs.db"));
  other.run("BEGIN IMMEDIATE");
  await area.start();
  await clock.advanceAsync(2_000);
  other.run("ROLLBACK");
  other.close();
  await advanceUntil(isIn(id, DONE));
  expect(dataOf()).toEqual([1]);
});

test("[JB17] after a failed sync nothing is accepted or started, and the metrics have no jobs", async () => {
  await close();
  let isBroken = false;
  open({
    syncFile: (descriptor, done) => {
      if (isBroken) done(Object.assign(new Error("EIO: the disk is gone"), { code: "EIO" }));
      else fs.fdatasync(descriptor, done);
    },
  });
  define("a");
  await area.start();
  await until(isIn(await area.queue.enqueue("a", 1), DONE));
  expect(area.load.length).toBe(1);
  isBroken = true;
  const refusal = () =>
    area.queue.enqueue("a", 2).then(
      () => null,
      ({ status }) => status,
    );
  expect([await refusal(), await refusal()]).toEqual([503, 503]);
  await clock.advanceAsync(10_000);
  expect(area.load).toEqual([]);
  expect(dataOf().length).toBeLessThanOrEqual(2);
});
