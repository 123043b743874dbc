import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClock } from "../../../../tests/support/clock.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine, type StorageEngine } from "../../db/index.ts";
import { textOf } from "../../db/processes/text-answer.ts";
import { extensionFile } from "../../db/vectors/extension.ts";
import { loadVectorExtension } from "../../db/vectors/load.ts";
import { SEARCH_QUEUE_MAX, SEARCH_QUEUE_TIMEOUT_MS, SEARCH_TIMEOUT_MS } from "./limits.ts";
import { createSearches } from "./service.ts";
import { createVectorStore, migrateIndex } from "./store.ts";
import type { IndexDefinition, SearchJob } from "./types.ts";

const INDEX: IndexDefinition = { name: "a", dimensions: 2, metric: "euclidean" };

let directory: string;
let engine: StorageEngine;
let job: SearchJob;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "searches-"));
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
  const searches = createSearches({ processesMax: 1, clock: systemClock });
  const order: string[] = [];
  const run = (callerName: string, signal?: AbortSignal) =>
    searches.run(job, { callerName, signal }).then(() => order.push(callerName));
  const many = Array.from({ length: 20 }, () => run("many"));
  const gone = new AbortController();
  const abandoned = run("gone", gone.signal);
  const one = run("one");
  gone.abort();
  await expect(abandoned).rejects.toMatchObject({ status: 499 });
  await Promise.all([...many, one]);
  expect(order.indexOf("one")).toBeLessThan(3);
  expect(order).not.toContain("gone");
  await searches.stop();
});

test("[VZ104] searches beyond the queue, and those that wait too long, are 503", async () => {
  const clock = testClock();
  const searches = createSearches({ processesMax: 0, clock });
  const caller = { callerName: "test", signal: undefined };
  const waiting = Array.from({ length: SEARCH_QUEUE_MAX }, () => searches.run(job, caller));
  await expect(searches.run(job, caller)).rejects.toMatchObject({ status: 503 });
  clock.advance(SEARCH_QUEUE_TIMEOUT_MS);
  const settled = await Promise.allSettled(waiting);
  expect(settled.every((result) => result.status === "rejected" && result.reason.status === 503)).toBe(true);
  await searches.stop();
});

test("[VZ105] a search is ended at its limit, or when its client goes away, and the next one finds a new process", async () => {
  const clock = testClock();
  const searches = createSearches({ processesMax: 1, clock });
  const caller = { callerName: "test", signal: undefined };
  const endless: SearchJob = {
    shape: "matches",
    sql: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x), 0, '{}', NULL FROM c",
    params: [],
    path: job.path,
    extensionPath: job.extensionPath,
  };
  const limited = searches.run(endless, caller);
  clock.advance(SEARCH_TIMEOUT_MS);
  await expect(limited).rejects.toMatchObject({ status: 408 });
  const gone = new AbortController();
  const abandoned = searches.run(endless, { callerName: "gone", signal: gone.signal });
  const next = searches.run(job, caller);
  gone.abort();
  await expect(abandoned).rejects.toMatchObject({ status: 499 });
  expect(JSON.parse(textOf(await next))).toMatchObject({ count: 1 });
  await searches.stop();
});
