import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

/** A hook does with `app` what the record's `steps` say, one after another, and keeps what each gave or threw. */
const CONFIG = `{
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { docs: { dimensions: 2 } },
  databases: { shared: { tables: { probes: {
    maxRecordSize: 4 * 1024 * 1024,
    schema: { steps: { type: "json" }, results: { type: "json" } },
    access: { insert: true, read: true },
    hooks: {
      async beforeInsert(auth, record, app) {
        const areas = { kv: app.kv, sql: app.sql, vectors: app.vectors };
        const results = [];
        for (const [area, name, method, ...args] of record.steps) {
          try {
            results.push((await areas[area](name)[method](...args)) ?? null);
          } catch (error) {
            results.push({ status: error.status ?? 0 });
          }
        }
        return { ...record, results };
      },
    },
  } } } },
}`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

type Step = [area: "kv" | "sql" | "vectors", name: string, method: string, ...args: unknown[]];

async function perform(...steps: Step[]): Promise<unknown[]> {
  const answer = await platform.post<{ results: unknown[] }>("/api/db/shared/tables/probes", { steps } as JsonObject);
  expect(answer.status).toBe(201);
  return answer.body.results;
}

test("[KV11] app.kv does what the endpoint does, with the same checks", async () => {
  const results = await perform(
    ["kv", "cache", "set", "a", { deep: [1] }, { ttl: 60 }],
    ["kv", "cache", "set", "b", 2],
    ["kv", "cache", "get", "a"],
    ["kv", "cache", "list", { prefix: "a" }],
    ["kv", "cache", "delete", "a"],
    ["kv", "cache", "get", "a"],
    ["kv", "cache", "set", "", 1],
    ["kv", "cache", "set", "c", 1, { ttl: 0 }],
    ["kv", "cache", "set", "c", "x".repeat(1024 * 1024)],
    ["kv", "nowhere", "get", "a"],
  );
  expect(results).toEqual([
    ...[null, null, { deep: [1] }, { items: ["a"], hasMore: false, cursor: null, keys: ["a"] }, null, null],
    ...[{ status: 400 }, { status: 400 }, { status: 413 }, { status: 404 }],
  ]);
  const seen = await platform.service.post("/api/kv/cache", { action: "get", key: "b" });
  expect(seen.body).toEqual({ value: 2 });
});

test("[DQ13] app.sql does what the endpoint does, with the same checks", async () => {
  const meta = { changes: expect.any(Number), rows_read: expect.any(Number), duration: expect.any(Number) };
  const results = await perform(
    ["sql", "main", "query", "CREATE TABLE t (a)"],
    ["sql", "main", "query", "INSERT INTO t VALUES (?) RETURNING a", ["x"]],
    ["sql", "main", "query", "SELECT a FROM t; SELECT 1"],
    ["sql", "main", "query", "SELECT nothing"],
    ["sql", "nowhere", "query", "SELECT 1"],
  );
  expect(results).toEqual([
    ...[
      { results: [], meta },
      { results: [{ a: "x" }], meta },
    ],
    ...[{ status: 400 }, { status: 400 }, { status: 404 }],
  ]);
});

test("[VZ15] app.vectors does what the endpoint does, with the same checks", async () => {
  const results = await perform(
    [
      "vectors",
      "docs",
      "upsert",
      [
        { id: "a", values: [1, 0], metadata: { n: 1 } },
        { id: "b", values: [0, 1] },
      ],
    ],
    ["vectors", "docs", "search", [1, 0], { topK: 1 }],
    ["vectors", "docs", "search", [1, 0], { filter: { n: { $ne: 1 } }, returnValues: true }],
    ["vectors", "docs", "search", [1]],
    ["vectors", "docs", "delete", ["a", "c"]],
    ["vectors", "nowhere", "delete", ["a"]],
  );
  expect(results).toEqual([
    2,
    [{ id: "a", score: 1, metadata: { n: 1 } }],
    [{ id: "b", score: 0, metadata: {}, values: [0, 1] }],
    { status: 400 },
    1,
    { status: 404 },
  ]);
});
