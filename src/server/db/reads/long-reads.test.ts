import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClock } from "../../../../tests/support/clock.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import {
  CHECKPOINT_TIMEOUT_MS,
  FORGET_TIMEOUT_MS,
  READ_PLACE_BYTES,
  READ_RESULT_BYTES_MAX,
  SENT_AS_JSON_CHARS_MAX,
  SENT_AS_JSON_MIN,
  WAITING_READS_MAX,
} from "../limits.ts";
import { QueryError } from "../processes/query-error.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import type { DatabaseFile, SqlValue, StorageEngine } from "../types.ts";
import { FileWork } from "../writer/file-work.ts";
import { LongReads } from "./long-reads.ts";
import type { RankRequest } from "./requests.ts";

const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
const ENDLESS_ROWS =
  "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT hex(zeroblob(100000)) FROM c";

let directory: string;
let engine: StorageEngine;
let file: DatabaseFile;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "queries-"));
  engine = createStorageEngine({ clock: systemClock, readWorkers: 2 });
  file = engine.open(join(directory, "a.db"), {
    migrate: (sqlite) => {
      sqlite.run("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY NOT NULL, n INTEGER, r REAL, b BLOB) STRICT");
      sqlite.run("INSERT OR IGNORE INTO items VALUES ('a', 1, 1.5, x'0102'), ('b', 2, NULL, NULL)");
    },
  });
});

afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const children = (): string[] =>
  process.platform !== "linux"
    ? []
    : readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8")
        .trim()
        .split(" ")
        .filter((pid) => pid !== "");

/** Children of this process that are running on a processor, or waiting for one. */
function busyChildren(): number {
  return children().filter((pid) => readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] === "R").length;
}

test("[DB16] a long read returns rows as arrays in column order, with their stored types", async () => {
  expect(await file.read("SELECT * FROM items ORDER BY id", [])).toEqual([
    ["a", 1, 1.5, new Uint8Array([1, 2])],
    ["b", 2, null, null],
  ]);
  const bound = ["text", 7, 1.25, 12n, true, null, new Uint8Array([9])];
  const types = bound.map((_, index) => `typeof(?${index + 1})`).join(", ");
  expect(await file.read(`SELECT ${types}`, bound)).toEqual([
    ["text", "integer", "real", "integer", "integer", "null", "blob"],
  ]);
});

test("[DB16] many values are bound as few are, in whatever way they reach the process", async () => {
  const listed = (values: readonly SqlValue[]): string => values.map(() => "(?)").join(", ");
  const many = Array.from({ length: SENT_AS_JSON_MIN }, (_, n) => n);
  const kept = ["half \ud800 a pair\u0000", 1.5, true, null, ...many];
  const others = [12n, new Uint8Array([9]), -0, Number.MAX_VALUE, ...many];
  const long = ["x".repeat(SENT_AS_JSON_CHARS_MAX * 200), 1, ...many];
  for (const values of [kept, others, long]) {
    const bound = await file.read(`SELECT column1, typeof(column1) FROM (VALUES ${listed(values)}) LIMIT 4`, values);
    const fews = values.slice(0, 4);
    expect(bound).toEqual(await file.read(`SELECT column1, typeof(column1) FROM (VALUES ${listed(fews)})`, fews));
  }
});

test("[DB16] a long read sees every write answered before, and cannot write", async () => {
  await file.write((tx) => tx.query("INSERT INTO items (id) VALUES ('c')").run());
  expect(await file.read("SELECT count(*) FROM items", [])).toEqual([[3]]);
  await expect(file.read("DELETE FROM items", [])).rejects.toThrow("readonly");
});

test("[DB17] a read over its time limit is 408, and has really ended", async () => {
  const reading = file.read(ENDLESS, [], { timeoutMs: 1_500 }).catch((error: unknown) => error);
  if (process.platform === "linux") while (busyChildren() === 0) await Bun.sleep(5);
  expect(await reading).toMatchObject({ status: 408 });
  if (process.platform === "linux") expect(busyChildren()).toBe(0);
  expect(await file.read("SELECT 1", [])).toEqual([[1]]);
});

test("[TB803] a read that ranks is ended past its time, in whichever of its statements", async () => {
  const rows = (sql: string) => ({ sql, params: [] });
  const candidates = rows(`SELECT 2, column1, column2 FROM (VALUES (1, 'a of b'), (2, 'a a'))`);
  const rank: RankRequest = {
    candidates,
    counts: [rows("SELECT 0, 2")],
    words: { by: "words", tokenize: "unicode61", queries: ['"a"'] },
    recordsMax: 10,
    offset: 0,
    limit: 2,
    others: rows("SELECT 2, 7"),
  };
  const read = (changed: Partial<RankRequest>) =>
    file
      .readPage("SELECT ?, value FROM json_each(?)", [], {
        rank: { ...rank, ...changed },
        page: { bytesMax: 1_000, rowBytes: 1, jsonColumns: [] },
        decode: (values) => values,
        timeoutMs: 500,
      })
      .then(({ rows: found }) => found)
      .catch((error: unknown) => error);
  expect(await read({})).toEqual([
    [2, 2],
    [2, 1],
    [2, 7],
  ]);
  const endless = rows(ENDLESS);
  for (const changed of [{ candidates: endless }, { counts: [endless] }, { others: endless }]) {
    expect(await read(changed)).toMatchObject({ status: 408 });
  }
  expect(await read({ others: null })).toEqual([
    [2, 2],
    [2, 1],
  ]);
});

test("[DB17] a read whose signal is aborted ends with the signal's reason", async () => {
  const abort = new AbortController();
  const reading = file.read(ENDLESS, [], { signal: abort.signal });
  setTimeout(() => abort.abort(new Error("the client has gone")), 50);
  await expect(reading).rejects.toThrow("the client has gone");
  await expect(file.read("SELECT 1", [], { signal: abort.signal })).rejects.toThrow("the client has gone");
});

test("[DB18] long reads delay neither writes nor quick reads nor each other", async () => {
  const abort = new AbortController();
  let isOver = false;
  const long = file.read(ENDLESS, [], { signal: abort.signal }).catch((error: unknown) => {
    isOver = true;
    return error;
  });
  await Bun.sleep(50);
  await file.write((tx) => tx.query("INSERT INTO items (id) VALUES ('c')").run());
  expect(file.query("SELECT count(*) AS n FROM items").get()).toEqual({ n: 3 });
  expect(await file.read("SELECT count(*) FROM items", [])).toEqual([[3]]);
  expect(isOver).toBe(false);
  abort.abort(new Error("enough"));
  expect(await long).toMatchObject({ message: "enough" });
});

test("[DB18] a read that waits for a process longer than its time is 503, and the queue is bounded", async () => {
  const long = [1, 2].map(() => file.read(ENDLESS, [], { timeoutMs: 600 }).catch((error: unknown) => error));
  await expect(file.read("SELECT 1", [], { timeoutMs: 100 })).rejects.toMatchObject({ status: 503 });
  const patient = Array.from({ length: WAITING_READS_MAX }, () => file.read("SELECT 1", []));
  await expect(file.read("SELECT 1", [])).rejects.toMatchObject({ status: 503 });
  expect(await Promise.all(long)).toMatchObject([{ status: 408 }, { status: 408 }]);
  expect(new Set((await Promise.all(patient)).flat(2))).toEqual(new Set([1]));
});

test("[DB19] an SQL error is a QueryError, and a result beyond the bound is refused", async () => {
  const error = await file.read("SELECT * FROM nowhere", []).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(QueryError);
  expect((error as QueryError).message).toBe("no such table: nowhere");
  await expect(file.read(ENDLESS_ROWS, [])).rejects.toThrow(`larger than ${READ_RESULT_BYTES_MAX} bytes`);
  await expect(file.read("SELECT length(hex(zeroblob(900000000)))", [])).rejects.toThrow("too big");
});

test("[DB20] closing a file waits for its reads, and a stop leaves no process and no file", async () => {
  const reading = file.read(
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000000) SELECT count(*) FROM c",
    [],
  );
  await Bun.sleep(20);
  const closed = file.close();
  await expect(file.read("SELECT 1", [])).rejects.toMatchObject({ status: 503 });
  expect(await reading).toEqual([[3_000_000]]);
  await closed;
  expect(readdirSync(directory)).toEqual(["a.db"]);
});

const COUNT = (rows: number) =>
  `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ${rows}) SELECT count(*) FROM c`;

test("[DB120] one caller's long reads leave processes to the others", async () => {
  const busy = new AbortController();
  const flood = { callerName: "flood", signal: busy.signal };
  const held = Array.from({ length: 10 }, () =>
    file.read(ENDLESS, [], { caller: flood }).catch((error: unknown) => error),
  );
  for (const callerName of ["honest", "another"]) {
    expect(await file.read("SELECT 1", [], { caller: { callerName, signal: undefined } })).toEqual([[1]]);
  }
  expect(engine.load).toMatchObject({ runningReads: 1, waitingReads: 9 });
  busy.abort();
  expect(await Promise.all(held)).toMatchObject(held.map(() => ({ status: 499 })));
});

test("[DB121] when too many reads wait, the newest of the caller with the most is refused", async () => {
  const abort = new AbortController();
  const flood = { callerName: "flood", signal: abort.signal };
  const reads = Array.from({ length: WAITING_READS_MAX + 1 }, () =>
    file.read(ENDLESS, [], { caller: flood }).catch((error: unknown) => error),
  );
  const honest = file.read("SELECT 1", [], { caller: { callerName: "honest", signal: undefined } });
  expect(await reads.at(-1)).toMatchObject({ status: 503 });
  expect(await honest).toEqual([[1]]);
  const large = "x".repeat(2 * WAITING_READS_MAX * READ_PLACE_BYTES);
  await expect(file.read("SELECT ?", [large])).rejects.toMatchObject({ status: 503 });
  abort.abort();
  await Promise.all(reads);
});

test("[DB122] a read whose caller is gone leaves the queue, or its process is killed", async () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const caller = ({ signal }: AbortController) => ({ callerName: "one", signal });
  const running = file.read(ENDLESS, [], { caller: caller(first) }).catch((error: unknown) => error);
  const waiting = file.read(ENDLESS, [], { caller: caller(second) }).catch((error: unknown) => error);
  expect(engine.load).toMatchObject({ runningReads: 1, waitingReads: 1 });
  second.abort();
  expect(await waiting).toMatchObject({ status: 499 });
  first.abort();
  expect(await running).toMatchObject({ status: 499 });
  if (process.platform === "linux") expect(busyChildren()).toBe(0);
  expect(engine.load).toMatchObject({ runningReads: 0, waitingReads: 0 });
});

test("[DB123] a query process that something else kills costs no read: it runs again on a fresh one", async () => {
  const reading = file.read(COUNT(3_000_000), []);
  await Bun.sleep(20);
  for (const pid of children()) process.kill(Number(pid), "SIGKILL");
  expect(await reading).toEqual([[3_000_000]]);
  // Killed while idle: the next read may still be sent to it.
  for (const pid of children()) process.kill(Number(pid), "SIGKILL");
  expect(await file.read("SELECT 1", [])).toEqual([[1]]);
});

test("[DB124] a large result arrives in parts, and a page ends before the row that would be too large", async () => {
  await file.write((tx) => tx.query("DELETE FROM items").run());
  const text = "\u00e9".repeat(100_000);
  await file.write((tx) => {
    for (let n = 0; n < 10; n++) tx.query("INSERT INTO items (id, n, b) VALUES (?, ?, NULL)").run(`${n}${text}`, n);
  });
  const turns = new Set<number>();
  let turn = 0;
  const bounds = { bytesMax: 1_000_000, rowBytes: 10, jsonColumns: [] };
  const decode = (values: unknown[]) => {
    turns.add(turn);
    queueMicrotask(() => turn++);
    return values[1];
  };
  const page = await file.readPage("SELECT id, n FROM items ORDER BY n", [], { page: bounds, decode });
  expect(page).toEqual({ rows: [0, 1, 2, 3], bytes: 4 * (10 + 200_001 + 2 + 1), isCut: true });
  expect(turns.size).toBeGreaterThan(1);
  const tiny = { bytesMax: 1, rowBytes: 0, jsonColumns: [] };
  const first = await file.readPage("SELECT id, n FROM items ORDER BY n", [], { page: tiny, decode });
  expect(first).toMatchObject({ rows: [0], isCut: true });
});

test("[DB143] the bytes of a page include its marked texts", async () => {
  const sql = "SELECT 'a ' || replace(hex(zeroblob(50)), '0', 'x') UNION ALL SELECT 'a'";
  const highlight = { columns: [0], pre: "<", post: ">", isEscaped: false, by: "substrings", terms: ["a"] } as const;
  const read = (bytesMax: number) => {
    const page = { bytesMax, rowBytes: 0, jsonColumns: [] };
    return file.readPage(sql, [], { page, highlight, decode: (values) => values });
  };
  const text = `a ${"x".repeat(100)}`;
  const marked = text.replace("a", "<a>");
  expect(await read(300)).toEqual({
    rows: [
      [text, marked],
      ["a", "<a>"],
    ],
    bytes: 104 + 106 + 3 + 5,
    isCut: false,
  });
  expect(await read(217)).toEqual({ rows: [[text, marked]], bytes: 104 + 106, isCut: true });
});

test("[DB125] a checkpoint, and a process that closes a file, have a deadline", async () => {
  const clock = testClock();
  const reads = new LongReads({ clock, processesMax: 1 });
  const fileWork = new FileWork(clock);
  const warm = () =>
    reads.query({
      path: file.path,
      library: null,
      sql: "SELECT 1",
      params: [],
      page: null,
      highlight: null,
      rank: null,
      timeoutMs: 1_000,
      caller: SERVER_CALLER,
      signal: undefined,
      decode: (values) => values,
      file: file.sqlite,
    });
  const stopChildren = () => {
    for (const pid of children()) process.kill(Number(pid), "SIGSTOP");
  };
  await fileWork.ready();
  stopChildren();
  const checkpoint = fileWork.checkpoint(file.path, { sync: false, next: false }).catch((error: unknown) => error);
  clock.advance(CHECKPOINT_TIMEOUT_MS);
  expect(await checkpoint).toMatchObject({
    status: 408,
    message: expect.stringContaining("The checkpoint took longer"),
  });
  await warm();
  stopChildren();
  const forgotten = reads.forget(file.path);
  clock.advance(FORGET_TIMEOUT_MS);
  await forgotten;
  await fileWork.checkpoint(file.path, { sync: false, next: false });
  await Promise.all([reads.stop(), fileWork.stop()]);
});
