import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { SIZED_ROWS_MAX } from "../limits.ts";
import { layOut } from "../migrations.ts";
import type { DatabaseFile, StorageEngine } from "../types.ts";

let directory: string;
let engine: StorageEngine;
let file: DatabaseFile;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sizes-"));
  engine = createStorageEngine({ clock: systemClock });
  file = engine.open(join(directory, "a.db"), {
    migrate(sqlite) {
      layOut(tablesLayout)(sqlite);
      sqlite.run('CREATE TABLE IF NOT EXISTS "it ems" (id TEXT PRIMARY KEY NOT NULL, data TEXT, n REAL) STRICT');
    },
  });
});

afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const insert = (ids: readonly string[], data: string) =>
  file.write((tx) => {
    for (const id of ids) {
      tx.query('INSERT INTO "it ems" VALUES (?, ?, 1)').run(id, data);
      tx.change({ table: "it ems", id, before: null, after: { id, data, n: 1 } });
    }
  });

test("[DB126] the bytes of a small table are measured once, and updated by changes", async () => {
  expect(file.tableBytes("it ems")).toBe(0);
  await insert(["a", "b"], "x".repeat(100_000));
  expect(file.tableBytes("it ems")).toBeWithin(200_000, 200_200);
  await file.write((tx) => {
    tx.query("UPDATE \"it ems\" SET data = '' WHERE id = 'a'").run();
    tx.change({
      table: "it ems",
      id: "a",
      before: { id: "a", data: "x".repeat(100_000) },
      after: { id: "a", data: "" },
    });
  });
  expect(file.tableBytes("it ems")).toBeWithin(100_000, 100_200);
  await expect(
    file.write((tx) => {
      tx.change({ table: "it ems", id: "c", before: null, after: { id: "c", data: "y".repeat(100_000) } });
      throw new Error("undone");
    }),
  ).rejects.toThrow("undone");
  expect(file.tableBytes("it ems")).toBeWithin(100_000, 100_200);
  const path = file.path;
  await file.close();
  file = engine.open(path, {});
  expect(file.tableBytes("it ems")).toBeWithin(100_000, 100_200);
});

test("[DB126] the elements of an array are counted without making names of their indexes", async () => {
  await insert(["a"], "");
  expect(file.tableBytes("it ems")).toBeWithin(1, 100);
  const names = () => {
    throw new Error("the names of an array's elements were listed");
  };
  const list = new Proxy(["x".repeat(1_000), [1, 2], 3], { ownKeys: names });
  await file.write((tx) => {
    tx.query("INSERT INTO \"it ems\" VALUES ('b', '', 1)").run();
    tx.change({ table: "it ems", id: "b", before: null, after: { id: "b", data: { list } } });
  });
  expect(file.tableBytes("it ems")).toBeWithin(1_000, 1_100);
});

test("[DB126] the size of a large table is unknown, whatever was measured before", async () => {
  expect(file.tableBytes("it ems")).toBe(0);
  for (let start = 0; start <= SIZED_ROWS_MAX; start += 1_000) {
    await insert(
      Array.from({ length: 1_000 }, (_, n) => `${start + n}`),
      "text",
    );
  }
  expect(file.tableBytes("it ems")).toBeNull();
});
