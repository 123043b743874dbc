import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClock } from "../../tests/support/clock.ts";
import { systemClock } from "../kernel/clock.ts";
import { systemIds } from "../kernel/ids.ts";
import { PROCESS_IDLE_MS, QUERY_TIMEOUT_MS, QUEUE_MAX_QUERIES, QUEUE_TIMEOUT_MS } from "./limits.ts";
import { createProcessPool, type ProcessPool } from "./process-pool.ts";
import { parseStatement } from "./statement.ts";
import { keepDatabaseFile } from "./store.ts";
import type { Binding, ProcessRole } from "./types.ts";

const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
const ENDLESS_WRITE = `INSERT INTO t SELECT x FROM (${ENDLESS.replace("count(*)", "x")}) WHERE x % 1000000000 = 1`;

let directory = "";
let path = "";
const pools: ProcessPool[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "d1-pool-"));
  path = join(directory, "a.db");
  keepDatabaseFile(path, systemIds).close();
});
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.stop()));
  rmSync(directory, { recursive: true });
});

function pool(role: ProcessRole, sizeMax = 1, clock = systemClock): ProcessPool {
  const made = createProcessPool({ path, role, sizeMax, clock });
  pools.push(made);
  return made;
}
async function ask(asked: ProcessPool, sql: string, params: Binding[] = []): Promise<unknown> {
  const { body } = await asked.run({ ...parseStatement(sql), params });
  return JSON.parse(Buffer.from(body).toString("utf8"));
}
const rowsOf = async (asked: ProcessPool, sql: string) => ((await ask(asked, sql)) as { results: unknown[] }).results;

/** The ids of the processes that have the test's own file among their arguments. */
function processIds(): number[] {
  const list = Bun.spawnSync(["ps", "-eo", "pid,args"]).stdout.toString();
  return list.split("\n").flatMap((line) => (line.includes(path) ? [Number.parseInt(line, 10)] : []));
}
const processCount = (): number => processIds().length;
async function untilProcesses(count: number): Promise<void> {
  for (let turn = 0; turn < 200 && processCount() !== count; turn++) await Bun.sleep(10);
  expect(processCount()).toBe(count);
}

test("[DQ7] a query is ended at its limit, with its process, and the next one finds a new process", async () => {
  const clock = testClock();
  const reader = pool("reader", 1, clock);
  const long = ask(reader, ENDLESS);
  await untilProcesses(1);
  const waiting = rowsOf(reader, "SELECT 1 AS one");
  clock.advance(QUERY_TIMEOUT_MS - 1);
  const stillRunning = Bun.sleep(50).then(() => "still running");
  expect(await Promise.race([long, stillRunning])).toBe("still running");
  clock.advance(1);
  const outcomes = await Promise.allSettled([long, waiting]);
  expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason.status)).toEqual([408, 408]);
  expect(processCount()).toBe(0);
  expect(await rowsOf(reader, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("[DQ7] a write that is ended has changed nothing", async () => {
  const clock = testClock();
  const writer = pool("writer", 1, clock);
  await ask(writer, "CREATE TABLE t (x)");
  const long = ask(writer, ENDLESS_WRITE);
  await Bun.sleep(100);
  clock.advance(QUERY_TIMEOUT_MS);
  await expect(long).rejects.toMatchObject({ status: 408 });
  await ask(writer, "INSERT INTO t VALUES ('after')");
  expect(await rowsOf(writer, "SELECT x FROM t")).toEqual([{ x: "after" }]);
});

test("[DQ8] what waits longer than its limit is told so, and more than the queue holds is refused", async () => {
  const clock = testClock();
  const reader = pool("reader", 1, clock);
  const long = ask(reader, ENDLESS);
  clock.advance(1);
  const waiting = Array.from({ length: QUEUE_MAX_QUERIES }, () => ask(reader, "SELECT 1"));
  await expect(ask(reader, "SELECT 1")).rejects.toMatchObject({ status: 503 });
  clock.advance(QUEUE_TIMEOUT_MS);
  const settled = await Promise.allSettled([long, ...waiting]);
  expect(settled.every(({ status }) => status === "rejected")).toBe(true);
});

test("[DQ8] a long read leaves the others their processes", async () => {
  const readers = pool("reader", 2);
  const long = ask(readers, ENDLESS);
  for (let turn = 0; turn < 5; turn++) expect(await rowsOf(readers, "SELECT 2 AS two")).toEqual([{ two: 2 }]);
  for (const id of processIds()) process.kill(id, "SIGKILL");
  await expect(long).rejects.toMatchObject({ status: 503 });
});

test("[DQ9] a process that dies gives its query 503, and the next one a new process", async () => {
  const reader = pool("reader");
  const long = ask(reader, ENDLESS);
  await untilProcesses(1);
  for (const id of processIds()) process.kill(id, "SIGKILL");
  await expect(long).rejects.toMatchObject({ status: 503 });
  expect(await rowsOf(reader, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("[DQ12] an idle process ends, and the next query starts another", async () => {
  const clock = testClock();
  const reader = pool("reader", 1, clock);
  await ask(reader, "SELECT 1");
  await untilProcesses(1);
  clock.advance(PROCESS_IDLE_MS);
  await untilProcesses(0);
  expect(await rowsOf(reader, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("[DQ6] a reader cannot write, whatever it is given", async () => {
  const answer = await pool("reader").run({ sql: "CREATE TABLE t (x)", mode: "read", params: [] });
  expect(answer.isOk).toBe(false);
  expect(Buffer.from(answer.body).toString()).toContain("readonly");
});

/** Handed on as if the statement's text were harmless: what the second wall is for. */
const escapes: [string, ProcessRole, "read" | "write" | "vacuum"][] = [
  ["ATTACH ':memory:' AS elsewhere", "reader", "read"],
  ["BEGIN", "reader", "read"],
  ["CREATE TEMP TABLE a (b)", "reader", "read"],
  ["ATTACH ':memory:' AS elsewhere", "writer", "write"],
  ["CREATE TEMP TABLE a (b)", "writer", "write"],
  ["CREATE TEMP VIEW a AS SELECT 1", "writer", "vacuum"],
  ["BEGIN", "writer", "vacuum"],
  ["SAVEPOINT a", "writer", "vacuum"],
];

test("[DQ17] a connection that a statement has changed is not used again", async () => {
  for (const [sql, role, mode] of escapes) {
    const asked = pool(role);
    await rowsOf(asked, "SELECT 1");
    const answer = await asked.run({ sql, mode, params: [] });
    expect([sql, answer.isOk, JSON.parse(Buffer.from(answer.body).toString()).status]).toEqual([sql, false, 400]);
    const list = await asked.run({ sql: "PRAGMA database_list", mode: "vacuum", params: [] });
    const { results } = JSON.parse(Buffer.from(list.body).toString());
    expect(results.map(({ name }: { name: string }) => name)).toEqual(["main"]);
    if (role === "writer")
      expect((await ask(asked, "CREATE TABLE IF NOT EXISTS b (c)")) as object).toHaveProperty("meta");
  }
  expect(await rowsOf(pool("reader"), "SELECT name FROM sqlite_schema")).toEqual([{ name: "b" }]);
});
