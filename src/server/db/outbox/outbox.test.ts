import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { boundsOf } from "../files/descriptors.ts";
import { createInstanceFiles } from "../instances/instance-files.ts";
import type { DatabaseFile, OpenedFile, OutboxOptions, StorageEngine, Transaction } from "../types.ts";
import { deleteOutboxRows, mayHaveOutboxRows, readOutboxRows } from "./rows.ts";
import type { OutboxRow } from "./types.ts";

const CREATE = `CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY NOT NULL) STRICT; ${tablesLayout.steps.join(";\n")}`;

let directory: string;
let engine: StorageEngine;
/** Number of `onWaiting` calls. */
let wakes: number;
let depth: number;
let onWritten: OutboxOptions["onWritten"];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "outbox-"));
  engine = createStorageEngine({ clock: systemClock });
  wakes = 0;
  depth = 0;
  onWritten = () => {};
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const outbox = (): OutboxOptions => ({
  origin: () => ({ depth, root: null }),
  onWritten: (tx, changes) => onWritten?.(tx, changes),
  onWaiting: () => {
    wakes += 1;
  },
});

const open = (): OpenedFile =>
  engine.open(join(directory, "a.db"), { migrate: (sqlite) => sqlite.run(CREATE), outbox: outbox() });

const row = (id: string, data = `"${id}"`): OutboxRow => ({
  id,
  names: ["first", "second"],
  group: "g",
  key: null,
  dueAt: 5,
  data,
  secret: null,
});

const rowsOf = (file: DatabaseFile, bounds = { rowsMax: 100, bytesMax: 1_000 }) =>
  file.write((tx) => readOutboxRows(tx, bounds));

const idsOf = async (file: DatabaseFile, bounds?: { rowsMax: number; bytesMax: number }) =>
  (await rowsOf(file, bounds)).map(({ id }) => id);

test("[DB260] rows are written with their write; an undone write or savepoint adds none", async () => {
  const file = open();
  expect(await idsOf(file)).toEqual([]);
  const failing = file.write((tx) => {
    tx.enqueue(row("undone"));
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  await file.write((tx) => {
    tx.enqueue(row("one"));
    const attempt = () =>
      tx.savepoint(() => {
        tx.enqueue(row("inner"));
        throw new Error("inner");
      });
    expect(attempt).toThrow("inner");
    tx.enqueue(row("two"));
  });
  expect(await rowsOf(file)).toMatchObject([
    { ...row("one"), seq: 1 },
    { ...row("two"), seq: 2 },
  ]);
  await file.write((tx) => deleteOutboxRows(tx, { seq: 1, id: "one" }));
  expect(await idsOf(file)).toEqual(["two"]);
});

test("[DB261] onWritten sees the changes and the cause of each write, and its error undoes the write", async () => {
  const file = open();
  const seen: unknown[] = [];
  onWritten = (tx, changes) => {
    seen.push([changes.map(({ id }) => id), tx.cause]);
    if (changes[0]?.id === "refused") throw new Error("refused");
  };
  const insert = (id: string, also: (tx: Transaction) => void = () => {}) =>
    file.write((tx) => {
      also(tx);
      tx.query("INSERT INTO items VALUES (?)").run(id);
      tx.change({ table: "items", id, before: null, after: { id } });
    });
  depth = 3;
  const deep = insert("a", (tx) => tx.causedBy({ user: "u" }));
  depth = 0;
  await deep;
  await expect(insert("refused")).rejects.toThrow("refused");
  await file.write((tx) => tx.query("INSERT INTO items VALUES ('unannounced')").run());
  expect(seen).toEqual([
    [["a"], { by: { user: "u" }, depth: 3, root: null }],
    [["refused"], { by: { server: true }, depth: 0, root: null }],
  ]);
  expect(file.query("SELECT id FROM items ORDER BY id").all()).toEqual([{ id: "a" }, { id: "unannounced" }]);
});

test("[DB267] a row keeps its secret, also in a table that an earlier version has made", async () => {
  const file = open();
  await file.write((tx) =>
    tx
      .query(
        `CREATE TABLE "_platform_outbox" ("seq" INTEGER PRIMARY KEY, "id" TEXT NOT NULL, "names" TEXT NOT NULL, "group" TEXT,
          "key" TEXT, "dueAt" INTEGER, "data" TEXT NOT NULL) STRICT`,
      )
      .run(),
  );
  await file.write((tx) => tx.enqueue(row("plain")));
  const secret = new Uint8Array([1, 2, 3]);
  expect((await rowsOf(file)).map((one) => one.secret)).toEqual([null]);
  await file.write((tx) => tx.enqueue({ ...row("secret"), secret }));
  expect((await rowsOf(file)).map(({ id, secret: kept }) => [id, kept])).toEqual([
    ["plain", null],
    ["secret", secret],
  ]);
});

test("[DB262] rows are said to wait when they are on disk, and when their file is opened", async () => {
  const file = open();
  await file.write((tx) => tx.query("INSERT INTO items VALUES ('x')").run());
  expect(wakes).toBe(0);
  await Promise.all(["a", "b"].map((id) => file.write((tx) => tx.enqueue(row(id)))));
  expect(wakes).toBe(1);
  await file.close();
  const again = open();
  expect(wakes).toBe(2);
  await again.write((tx) => deleteOutboxRows(tx, { seq: 2, id: "b" }));
  await again.close();
  open();
  expect(wakes).toBe(2);
});

test("[DB263] rows are read in order, up to a number and up to bytes, and always the first", async () => {
  const file = open();
  await file.write((tx) => {
    for (const id of ["a", "b", "c", "d"]) tx.enqueue(row(id, `"${"x".repeat(98)}"`));
  });
  expect(await idsOf(file, { rowsMax: 3, bytesMax: 1_000 })).toEqual(["a", "b", "c"]);
  expect(await idsOf(file, { rowsMax: 10, bytesMax: 250 })).toEqual(["a", "b"]);
  expect(await idsOf(file, { rowsMax: 10, bytesMax: 1 })).toEqual(["a"]);
});

test("[DB264] a write that only enqueues creates its instance", async () => {
  const instances = createInstanceFiles(engine, {
    directory: join(directory, "spaces"),
    bounds: boundsOf(8),
    declaration: { tables: [], options: {} },
    outbox,
  });
  const file = (id: string) => instances.get(id, { create: true });
  await file("none")?.write(() => null);
  await file("some")?.write((tx) => tx.enqueue(row("a")));
  expect(["none", "some"].map((id) => instances.exists(id))).toEqual([false, true]);
  expect(wakes).toBe(1);
  await instances.close();
});

test("[DB265] a look finds waiting rows without changing anything; a file with a WAL counts as having some", async () => {
  const path = join(directory, "a.db");
  const file = open();
  await file.close();
  expect(mayHaveOutboxRows(path)).toBe(false);
  const again = open();
  await again.write((tx) => tx.query("INSERT INTO items VALUES ('x')").run());
  expect(mayHaveOutboxRows(path)).toBe(true);
  await again.write((tx) => tx.enqueue(row("a")));
  await again.close();
  expect(mayHaveOutboxRows(path)).toBe(true);
  const third = open();
  await third.write((tx) => deleteOutboxRows(tx, { seq: 1, id: "a" }));
  await third.close();
  expect(mayHaveOutboxRows(path)).toBe(false);
  expect([`${path}-wal`, `${path}-shm`].map((side) => Bun.file(side).size)).toEqual([0, 0]);
  mkdirSync(join(directory, "folder.db"));
  expect(mayHaveOutboxRows(join(directory, "folder.db"))).toBe(true);
  expect(mayHaveOutboxRows(join(directory, "missing.db"))).toBe(false);
});
