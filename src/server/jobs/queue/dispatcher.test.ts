import { afterEach, beforeEach, expect, test } from "bun:test";
import fs, { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settle, type TestClock, testClock } from "../../../../tests/support/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { Foreground } from "../../../kernel/observing/foreground.ts";
import { createStorageEngine, type StorageEngine } from "../../db/index.ts";
import { createQueueCore, type QueueCore } from "./core.ts";

const GIVE_UP_MS = 10_000;
let directory = "";
let clock: TestClock;
let engine: StorageEngine;
let core: QueueCore;
/** Syncs held back by the test; null: none is. */
let held: (() => void)[] | null = null;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "dispatcher-"));
  clock = testClock();
  held = null;
  engine = createStorageEngine({
    clock,
    syncFile(descriptor, done) {
      if (held === null) fs.fdatasync(descriptor, done);
      else held.push(() => fs.fdatasync(descriptor, done));
    },
  });
  core = createQueueCore({
    engine,
    dataDirectory: directory,
    secrets: { jwtSecret: "s".repeat(32) },
    isDrill: false,
    foreground: new Foreground(),
    clock,
    ids: systemIds,
    logger: silentLogger,
  });
});
afterEach(async () => {
  letSync();
  await core.stop();
  await engine.stop();
  rmSync(directory, { recursive: true });
});

function letSync(): void {
  const waiting = held ?? [];
  held = null;
  for (const sync of waiting) sync();
}

async function until(isSo: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error("not so in time");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Starts two jobs that run until the test ends or cancels them. Returns the number of the second one. */
async function runTwo() {
  const ends: (() => void)[] = [];
  core.queue.define("a", {
    retries: 0,
    timeout: null,
    concurrency: 2,
    run({ signal }) {
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.push(resolve);
      signal.addEventListener("abort", () => resolve());
      return promise;
    },
  });
  core.start();
  await core.queue.enqueue("a", 1);
  const id = await core.queue.enqueue("a", 2);
  await until(() => ends.length === 2);
  const row = core.open().file.query<{ seq: number }>("SELECT seq FROM jobs WHERE id = ?").get(id);
  return { ends, seq: row?.seq ?? 0 };
}

test("[JB31] a cancelled job is on disk when that is answered, also where a step is on its way that needs no sync", async () => {
  const { ends, seq } = await runTwo();
  held = [];
  ends[0]?.();
  // The end of the first job has planned a step in this turn.
  await Promise.resolve();
  await Promise.resolve();
  await Promise.resolve();
  const answers: boolean[] = [];
  const cancelled = core.dispatcher.cancel(seq).then((isCancelled) => void answers.push(isCancelled));
  await settle();
  expect(answers).toEqual([]);
  await until(() => (held?.length ?? 0) > 0);
  expect(answers).toEqual([]);
  letSync();
  await cancelled;
  expect(answers).toEqual([true]);
});

test("[JB31] two requests that cancel a job at once are both answered", async () => {
  const { seq } = await runTwo();
  expect(await Promise.all([core.dispatcher.cancel(seq), core.dispatcher.cancel(seq)])).toEqual([true, true]);
});
