import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../kernel/clock.ts";
import { createStorageEngine } from "./engine.ts";
import { READ_RESULT_BYTES_MAX, WAITING_READS_MAX } from "./limits.ts";
import { QueryError, ResultTooLarge } from "./query-processes.ts";
import type { DatabaseFile, StorageEngine } from "./types.ts";

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
      sqlite.run("CREATE TABLE items (id TEXT PRIMARY KEY NOT NULL, n INTEGER, r REAL, b BLOB) STRICT");
      sqlite.run("INSERT INTO items VALUES ('a', 1, 1.5, x'0102'), ('b', 2, NULL, NULL)");
    },
  });
});

afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

/** Children of this process that are running on a processor, or waiting for one. */
function busyChildren(): number {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").trim().split(" ");
  return children.filter((pid) => pid !== "" && readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] === "R").length;
}

test("[DB16] a long read gives rows as arrays in column order, with the types that went in", async () => {
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

test("[DB16] a long read sees what was answered before, and cannot write", async () => {
  await file.write((tx) => tx.query("INSERT INTO items (id) VALUES ('c')").run());
  expect(await file.read("SELECT count(*) FROM items", [])).toEqual([[3]]);
  await expect(file.read("DELETE FROM items", [])).rejects.toThrow("readonly");
});

test("[DB17] a read over its time is 408, and has really ended", async () => {
  const reading = file.read(ENDLESS, [], { timeoutMs: 1_500 }).catch((error: unknown) => error);
  if (process.platform === "linux") while (busyChildren() === 0) await Bun.sleep(5);
  expect(await reading).toMatchObject({ status: 408 });
  if (process.platform === "linux") expect(busyChildren()).toBe(0);
  expect(await file.read("SELECT 1", [])).toEqual([[1]]);
});

test("[DB17] a read whose signal fires ends, with the signal's reason", async () => {
  const abort = new AbortController();
  const reading = file.read(ENDLESS, [], { signal: abort.signal });
  setTimeout(() => abort.abort(new Error("the client has gone")), 50);
  await expect(reading).rejects.toThrow("the client has gone");
  await expect(file.read("SELECT 1", [], { signal: abort.signal })).rejects.toThrow("the client has gone");
});

test("[DB18] long reads hold up neither writes nor quick reads nor each other", async () => {
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

test("[DB19] an error of SQL is a QueryError, and a result beyond the bound is refused", async () => {
  const error = await file.read("SELECT * FROM nowhere", []).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(QueryError);
  expect((error as QueryError).message).toBe("no such table: nowhere");
  await expect(file.read(ENDLESS_ROWS, [])).rejects.toThrow(`larger than ${READ_RESULT_BYTES_MAX} bytes`);
  await expect(file.read("SELECT length(hex(zeroblob(900000000)))", [])).rejects.toThrow("too big");
});

test("[DB143] a reader may bound its rows as JSON, marks included", async () => {
  const sql = "SELECT 'a ' || replace(hex(zeroblob(50)), '0', 'x') UNION ALL SELECT 'a'";
  const highlight = { columns: [0], pre: "<", post: ">", isEscaped: false, by: "substrings", terms: ["a"] } as const;
  expect(await file.read(sql, [], { jsonBytesMax: 230, highlight })).toHaveLength(2);
  await expect(file.read(sql, [], { jsonBytesMax: 220, highlight })).rejects.toBeInstanceOf(ResultTooLarge);
  await expect(file.read(ENDLESS_ROWS, [], { jsonBytesMax: 1_000 })).rejects.toThrow("larger than 1000 bytes");
});

test("[DB20] closing a file waits for its reads, and stopping leaves no process and no file behind", async () => {
  const reading = file.read(
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000000) SELECT count(*) FROM c",
    [],
  );
  await Bun.sleep(20);
  const closed = file.close();
  await expect(file.read("SELECT 1", [])).rejects.toThrow("closed");
  expect(await reading).toEqual([[3_000_000]]);
  await closed;
  expect(readdirSync(directory)).toEqual(["a.db"]);
});
