import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClock } from "../../tests/support/clock.ts";
import { createStorageEngine, type StorageEngine } from "../db/index.ts";
import { systemClock } from "../kernel/clock.ts";
import { silentLogger } from "../kernel/logger.ts";
import { extensionFile, loadVectorExtension } from "./extension.ts";
import { SEARCH_QUEUE_MAX, SEARCH_QUEUE_TIMEOUT_MS } from "./limits.ts";
import { createSearchPool } from "./search-pool.ts";
import { createVectorStore, migrateIndex } from "./store.ts";
import type { IndexDefinition, SearchJob } from "./types.ts";

const INDEX: IndexDefinition = { name: "a", dimensions: 2, metric: "euclidean" };

let directory: string;
let engine: StorageEngine;
let job: SearchJob;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "search-pool-"));
  const { path: extensionPath } = await extensionFile(directory);
  engine = createStorageEngine({ clock: systemClock });
  const file = engine.open(join(directory, "a.db"), {
    migrate(sqlite) {
      loadVectorExtension(sqlite, extensionPath);
      migrateIndex(sqlite, INDEX);
    },
  });
  const vector = Float32Array.of(1, 0);
  await createVectorStore(file, INDEX).upsert([{ id: "one", values: vector, metadata: "{}" }]);
  const task = createVectorStore(file, INDEX).searchJob({ vector, topK: 1, filter: [], returnValues: false });
  job = { ...task, path: file.path, extensionPath };
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

test("[VZ104] callers take turns, and a search of a client that has gone away does not begin", async () => {
  const pool = createSearchPool({ sizeMax: 1, clock: systemClock, logger: silentLogger });
  const order: string[] = [];
  const run = (callerName: string, signal?: AbortSignal) =>
    pool.run(job, { callerName, signal }).then(() => order.push(callerName));
  const many = Array.from({ length: 20 }, () => run("many"));
  const gone = new AbortController();
  const abandoned = run("gone", gone.signal);
  const one = run("one");
  gone.abort();
  await expect(abandoned).rejects.toMatchObject({ status: 499 });
  await Promise.all([...many, one]);
  expect(order.indexOf("one")).toBeLessThan(3);
  expect(order).not.toContain("gone");
  pool.stop();
});

test("[VZ104] searches beyond the queue, and those that wait too long, are 503", async () => {
  const clock = testClock();
  const pool = createSearchPool({ sizeMax: 0, clock, logger: silentLogger });
  const caller = { callerName: "test", signal: undefined };
  const waiting = Array.from({ length: SEARCH_QUEUE_MAX }, () => pool.run(job, caller));
  await expect(pool.run(job, caller)).rejects.toMatchObject({ status: 503 });
  clock.advance(SEARCH_QUEUE_TIMEOUT_MS);
  const settled = await Promise.allSettled(waiting);
  expect(settled.every((result) => result.status === "rejected" && result.reason.status === 503)).toBe(true);
  pool.stop();
});
