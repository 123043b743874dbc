import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClock } from "../../../../tests/support/clock.ts";
import { openSqlFile } from "../../../../tests/support/d1-file.ts";
import { until } from "../../../../tests/support/until.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import type { AnswerText } from "../../db/index.ts";
import { createAnswerRoom } from "../../db/processes/answer-room.ts";
import { logBytes, type SqlFile } from "./database-file.ts";
import {
  LOG_KEPT_BYTES,
  LOG_PAGES,
  PROCESS_IDLE_MS,
  QUERY_TIMEOUT_MS,
  QUEUE_MAX_QUERIES,
  QUEUE_TIMEOUT_MS,
} from "./limits.ts";
import { type Binding, failureOf, type ProcessRole, type QueryAnswer, QueryError } from "./query.ts";
import { Queries, SqlService } from "./service.ts";

const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
const ENDLESS_WRITE = `INSERT INTO t SELECT x FROM (${ENDLESS.replace("count(*)", "x")}) WHERE x % 1000000000 = 1`;

const CALLER = { callerName: "test", signal: undefined };

let directory = "";
let path = "";
let file: SqlFile;
const pools: Queries[] = [];
/** Children that are there before a test: other tests of this process may have left one that is about to end. */
let others: ReadonlySet<number> = new Set();

beforeEach(() => {
  others = new Set(childIds());
  directory = mkdtempSync(join(tmpdir(), "d1-pool-"));
  path = join(directory, "a.db");
  file = openSqlFile(path);
});
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.stop()));
  await file.close();
  rmSync(directory, { recursive: true });
});

function pool(role: ProcessRole, processesMax = 1, clock = systemClock): Queries {
  const made = new Queries({ file, role, processesMax, room: createAnswerRoom(), clock });
  pools.push(made);
  return made;
}
const queryOf = (sql: string, params: Binding[] = []) => ({ kind: "parsed" as const, query: { sql, params } });
const textOf = (answer: QueryAnswer) => Buffer.concat(answer?.parts ?? []).toString();
async function ask(asked: Queries, sql: string, params: Binding[] = []): Promise<unknown> {
  return JSON.parse(textOf(await asked.run(queryOf(sql, params), CALLER)));
}
const rowsOf = async (asked: Queries, sql: string) => ((await ask(asked, sql)) as { results: unknown[] }).results;

/** Lists the ids of this process's children. */
function childIds(): number[] {
  const list = Bun.spawnSync(["ps", "-eo", "pid=,ppid=,comm="]).stdout.toString().trim().split("\n");
  return list.flatMap((line) => {
    const [pid = "", parent = "", name = ""] = line.trim().split(/\s+/);
    return Number(parent) === process.pid && !name.endsWith("ps") ? [Number(pid)] : [];
  });
}
/** Lists the ids of the query processes, which are the children that came with this test. */
const processIds = (): number[] => childIds().filter((id) => !others.has(id));
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

test("[DQ7] a write that is cancelled has changed nothing", async () => {
  const clock = testClock();
  const writer = pool("writer", 1, clock);
  await ask(writer, "CREATE TABLE t (x)");
  const long = ask(writer, ENDLESS_WRITE);
  await Bun.sleep(100);
  clock.advance(QUERY_TIMEOUT_MS);
  await expect(long).rejects.toMatchObject({ status: 408 });
  await ask(writer, "INSERT INTO t VALUES ('after')");
  expect(await rowsOf(pool("reader"), "SELECT x FROM t")).toEqual([{ x: "after" }]);
});

test("[DQ18] a write that is ended at its limit gives back what it has written to the write-ahead log", async () => {
  const clock = testClock();
  const writer = pool("writer", 1, clock);
  const service = new SqlService({ path, readers: pool("reader"), writer, logger: silentLogger });
  const query = (sql: string) => service.query({ sql, params: [] }, CALLER);
  await query("CREATE TABLE t (x)");
  const long = query(`INSERT INTO t SELECT randomblob(100000) FROM (${ENDLESS.replace("count(*)", "x")})`);
  long.catch(() => {});
  const sizeOf = () => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  await until("the log is large", () => sizeOf() > 2 * LOG_KEPT_BYTES);
  clock.advance(QUERY_TIMEOUT_MS);
  await expect(long).rejects.toMatchObject({ status: 408 });
  await until("the log is small", () => sizeOf() <= LOG_KEPT_BYTES);
  await query("INSERT INTO t VALUES ('after')");
  expect(await rowsOf(pool("reader"), "SELECT x FROM t")).toEqual([{ x: "after" }]);
});

test("[DQ19] a write whose log outgrows the bound is ended and changes nothing, and the log is given back", async () => {
  const room = createAnswerRoom();
  const logOverDatabaseMaxBytes = 2 * LOG_KEPT_BYTES;
  const writer = new Queries({
    file,
    role: "writer",
    processesMax: 1,
    room,
    clock: systemClock,
    logOverDatabaseMaxBytes,
  });
  pools.push(writer);
  const service = new SqlService({ path, readers: pool("reader"), writer, logger: silentLogger });
  const query = (sql: string) => service.query({ sql, params: [] }, CALLER);
  await query("CREATE TABLE t (x)");
  const endless = `INSERT INTO t SELECT randomblob(100000) FROM (${ENDLESS.replace("count(*)", "x")})`;
  await expect(query(endless)).rejects.toMatchObject({ status: 413 });
  await until("the log is small", () => logBytes(path) <= LOG_KEPT_BYTES);
  await query("INSERT INTO t VALUES ('after')");
  expect(await rowsOf(pool("reader"), "SELECT x FROM t")).toEqual([{ x: "after" }]);
});

test("[DQ19] while long reads keep a large log from being emptied, writes are 503, and go on afterwards", async () => {
  const writer = new Queries({
    file,
    role: "writer",
    processesMax: 1,
    room: createAnswerRoom(),
    clock: systemClock,
    logOverDatabaseMaxBytes: LOG_KEPT_BYTES,
  });
  pools.push(writer);
  const service = new SqlService({ path, readers: pool("reader"), writer, logger: silentLogger });
  const write = (sql: string) => service.query({ sql, params: [] }, CALLER);
  await write("CREATE TABLE t (x)");
  const reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM t").get();
  for (let n = 0; n < 20 && logBytes(path) <= 2 * LOG_KEPT_BYTES; n++) {
    await write("INSERT INTO t VALUES (zeroblob(8000000))").catch(() => {});
    await write("DELETE FROM t").catch(() => {});
  }
  await expect(write("INSERT INTO t VALUES (1)")).rejects.toMatchObject({ status: 503 });
  reader.close();
  await until("the write is carried out", () =>
    write("INSERT INTO t VALUES (2)").then(
      () => true,
      () => false,
    ),
  );
});

test("[DQ1] the first read of a process is answered where virtual tables prepare what they write", async () => {
  const writer = pool("writer");
  const warm = new SqlService({ path, readers: pool("reader"), writer, logger: silentLogger });
  await warm.query({ sql: "SELECT 1", params: [] }, CALLER);
  const made = [
    "CREATE VIRTUAL TABLE words USING fts5(text)",
    "CREATE VIRTUAL TABLE places USING rtree(id, x0, x1)",
    "INSERT INTO words VALUES ('heat')",
    "INSERT INTO places VALUES (1, 0, 1)",
  ];
  for (const sql of made) await ask(writer, sql);
  const reads: [sql: string, rows: unknown[]][] = [
    ["SELECT text FROM words WHERE words MATCH 'heat'", [{ text: "heat" }]],
    ["SELECT id FROM places WHERE x0 < 1", [{ id: 1 }]],
    ["SELECT text, id FROM words, places", [{ text: "heat", id: 1 }]],
  ];
  for (const [sql, rows] of reads) {
    const fresh = new SqlService({ path, readers: pool("reader"), writer: pool("writer"), logger: silentLogger });
    for (const service of [warm, fresh, fresh]) {
      const answer = await service.query({ sql, params: [] }, CALLER);
      expect(JSON.parse(textOf(answer))).toMatchObject({ results: rows });
    }
  }
});

test("[DQ8] a query that waits too long is refused with the reason, as is one beyond the queue", async () => {
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

test("[DQ8] a long read leaves processes to other callers", async () => {
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

test("[DQ6] a reader writes nothing, and a writer reads nothing, whatever it is given", async () => {
  for (const [role, sql] of [
    ["reader", "CREATE TABLE t (x)"],
    ["reader", "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a"],
    ["writer", "SELECT 1"],
    ["writer", "EXPLAIN CREATE TABLE t (x)"],
  ] as const) {
    // The second one is refused, as there is no such table.
    const answer = await pool(role)
      .run(queryOf(sql), CALLER)
      .catch(() => null);
    expect([sql, answer]).toEqual([sql, null]);
  }
  expect(await rowsOf(pool("reader"), "SELECT name FROM sqlite_schema")).toEqual([{ name: "_platform_commit" }]);
});

test("[DQ102] callers take turns, however many queries one of them has waiting", async () => {
  const reader = pool("reader");
  const order: string[] = [];
  const asks = (callerName: string, count: number) =>
    Array.from({ length: count }, () =>
      reader.run(queryOf("SELECT 1"), { callerName, signal: undefined }).then(() => order.push(callerName)),
    );
  await Promise.all([...asks("many", 20), ...asks("one", 1)]);
  expect(order.indexOf("one")).toBeLessThan(3);
});

test("[DQ102] large queries take several places of the queue", async () => {
  const reader = pool("reader");
  const large = "x".repeat(9 * 1024 * 1024);
  const long = ask(reader, ENDLESS);
  const waiting = Array.from({ length: 20 }, () => ask(reader, "SELECT length(?)", [large]));
  const refused = (await Promise.allSettled(waiting.slice(10))).map(
    (result) => result.status === "rejected" && result.reason.status,
  );
  expect(new Set(refused)).toEqual(new Set([503]));
  for (const id of processIds()) process.kill(id, "SIGKILL");
  await expect(long).rejects.toMatchObject({ status: 503 });
  await Promise.all(waiting.slice(0, 10));
});

test("[DQ104] after a failed sync the database refuses everything", async () => {
  const failed = new QueryError({ status: 503, message: "disk I/O error", isFinal: true });
  const done: AnswerText = { parts: [Buffer.from("{}")], sizeBytes: 2, note: null, release() {} };
  const stop = async () => {};
  const writer = { run: () => Promise.reject(failed), settle() {}, stop };
  const readers = { run: async () => done, settle() {}, stop };
  const service = new SqlService({ path, readers, writer, logger: silentLogger });
  expect(await service.query({ sql: "SELECT 1", params: [] }, CALLER)).toEqual({ ...done, isWrite: false });
  const message = "until the server has been restarted";
  await expect(service.query({ sql: "INSERT INTO t VALUES (1)", params: [] }, CALLER)).rejects.toThrow(message);
  await expect(service.query({ sql: "SELECT 1", params: [] }, CALLER)).rejects.toThrow(message);
});

test("[DQ104] a failed sync is final, and a full disk is not", () => {
  const failure = (errcode: number) => failureOf(Object.assign(new Error("disk I/O error"), { errcode }));
  for (const errcode of [1034, 1290]) expect(failure(errcode)).toMatchObject({ status: 503, isFinal: true });
  for (const errcode of [13, 4874]) expect(failure(errcode)).toEqual({ status: 507, message: "Insufficient storage" });
  expect(failure(10)).toEqual({ status: 500, message: "disk I/O error" });
});

test("[DQ103] an answer that waits for room is dropped with its process", async () => {
  const room = createAnswerRoom();
  const held = room.reserve("other", 60 * 1024 * 1024);
  const clock = testClock();
  const reader = new Queries({ file, role: "reader", processesMax: 1, room, clock });
  pools.push(reader);
  const waiting = reader.run(queryOf("SELECT hex(zeroblob(10000000)) AS x"), CALLER);
  expect(await Promise.race([waiting, Bun.sleep(500).then(() => "waits")])).toBe("waits");
  clock.advance(QUERY_TIMEOUT_MS);
  await expect(waiting).rejects.toMatchObject({ status: 408 });
  held.release();
  const answer = await reader.run(queryOf("SELECT hex(zeroblob(10000000)) AS x"), CALLER);
  expect(answer?.sizeBytes).toBeGreaterThan(20_000_000);
});

const saltsOf = (): string => readFileSync(`${path}-wal`).subarray(16, 24).toString("hex");

test("[DB362] each write has a number, whoever asked for it, and one that fails has none", async () => {
  const writer = pool("writer");
  let calls = 0;
  file.gate.onCommitted = () => {
    calls += 1;
  };
  await ask(writer, "CREATE TABLE t (x UNIQUE)");
  const first = file.gate.number;
  expect(first).toBeGreaterThan(1_600_000_000_000_000);
  await Promise.all([1, 2, 3].map((x) => ask(writer, "INSERT INTO t VALUES (?)", [x])));
  expect([file.gate.number, calls]).toEqual([first + 3, 4]);
  await expect(ask(writer, "INSERT INTO t VALUES (1)")).rejects.toMatchObject({ failure: { status: 400 } });
  expect(file.gate.number).toBe(first + 3);
  // The process is another one, and the numbers go on.
  for (const id of processIds()) process.kill(id, "SIGKILL");
  await untilProcesses(0);
  await ask(writer, "VACUUM");
  await ask(writer, "DELETE FROM t");
  expect(file.gate.number).toBe(first + 6);
  using found = new Database(path, { readonly: true });
  expect(found.query("SELECT number, file FROM _platform_commit").get()).toEqual({
    number: first + 6,
    file: file.gate.file,
  });
});

test("[DB361] [DB362] the log of a database restarts only once the observer of its commits has been waited for", async () => {
  const writer = pool("writer");
  await ask(writer, "CREATE TABLE t (x)");
  const before = saltsOf();
  const observed = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let isCommitted = false;
  file.gate.whenObserved = async () => {
    // Asked before the commit, and then before the restart.
    if (isCommitted) {
      asked.resolve();
      await observed.promise;
    }
    isCommitted = true;
  };
  await ask(writer, `INSERT INTO t VALUES (zeroblob(${(LOG_PAGES + 10) * 4096}))`);
  await asked.promise;
  const waiting = ask(writer, "INSERT INTO t VALUES (1)").then(() => "written");
  expect(await Promise.race([waiting, Bun.sleep(300).then(() => "waits")])).toBe("waits");
  expect(saltsOf()).toBe(before);
  observed.resolve();
  expect(await waiting).toBe("written");
  await until("the log has restarted", () => saltsOf() !== before);
  expect(file.loggedPages()).toBeLessThan(LOG_PAGES);
});

test("[DB361] a database closes only once the observer of its commits has been waited for", async () => {
  await ask(pool("writer"), "CREATE TABLE t (x)");
  await Promise.all(pools.splice(0).map((one) => one.stop()));
  const observed = Promise.withResolvers<void>();
  file.gate.whenObserved = () => observed.promise;
  const closed = file.close().then(() => "closed");
  expect(await Promise.race([closed, Bun.sleep(50).then(() => "waits")])).toBe("waits");
  expect(logBytes(path)).toBeGreaterThan(0);
  file.gate.whenObserved = null;
  observed.resolve();
  expect(await closed).toBe("closed");
  expect(logBytes(path)).toBe(0);
  file = openSqlFile(path);
});

test("[DB362] a database without the row gets it when it is opened, keeps its content, and uses the row later", async () => {
  const old = join(directory, "old.db");
  {
    using before = new Database(old);
    before.run("CREATE TABLE kept (x)");
    before.run("INSERT INTO kept VALUES ('of 0.2')");
  }
  let opened = openSqlFile(old);
  expect([opened.gate.number, opened.gate.isRewritten]).toEqual([0, true]);
  const writer = new Queries({
    file: opened,
    role: "writer",
    processesMax: 1,
    room: createAnswerRoom(),
    clock: systemClock,
  });
  await ask(writer, "INSERT INTO kept VALUES ('later')");
  const { number, file: id } = opened.gate;
  await writer.stop();
  await opened.close();
  opened = openSqlFile(old);
  expect([opened.gate.number, opened.gate.file, opened.gate.isRewritten]).toEqual([number, id, false]);
  await opened.close();
  using found = new Database(old, { readonly: true });
  expect(found.query("SELECT x FROM kept").values()).toEqual([["of 0.2"], ["later"]]);
});

test("[DB362] a database whose user has made a table of that name is refused, with its name", () => {
  const taken = join(directory, "taken.db");
  {
    using own = new Database(taken);
    own.run("CREATE TABLE _platform_commit (mine)");
  }
  expect(() => openSqlFile(taken)).toThrow(taken);
});
