import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { boundsOf } from "../files/descriptors.ts";
import type { DeclaredTable } from "../schema/types.ts";
import type { DatabaseFile, StorageEngine } from "../types.ts";
import { createInstanceFiles, type InstanceFiles } from "./instance-files.ts";

const column = { type: "TEXT" as const, notNull: false, unique: false, check: null, references: null };
const items: DeclaredTable = {
  name: "items",
  kind: "",
  columnKinds: {},
  columns: [
    { ...column, name: "id", notNull: true },
    { ...column, name: "text" },
  ],
  indexes: [],
  fts: null,
  migrations: [],
};

let directory: string;
let engine: StorageEngine;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "instance-migrations-"));
  engine = createStorageEngine({ clock: systemClock });
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const declare = (tables: DeclaredTable[]): InstanceFiles =>
  createInstanceFiles(engine, { directory, bounds: boundsOf(8), declaration: { tables, options: {} } });

function fileIn(instances: InstanceFiles): DatabaseFile {
  const file = instances.get("large", { create: true });
  if (file === null) throw new Error("create gives a file");
  return file;
}

test("[DB310] while a file is changed, what would open it at once is 503, and everything else waits", async () => {
  const before = declare([items]);
  await fileIn(before).write((tx) => {
    const insert = tx.query("INSERT INTO items VALUES (?, ?)");
    for (let n = 0; n < 4_000; n++) insert.run(`r${n}`, "x".repeat(1_000));
    tx.change({ table: "items", id: "r0", before: null, after: { id: "r0" } });
  });
  await before.close();
  const after = declare([{ ...items, indexes: [{ fields: ["text"], unique: false }] }]);
  const file = fileIn(after);
  const ready = after.ready("large");
  const write = file.write((tx) => tx.query("SELECT count(*) AS n FROM items").get());
  expect(ready).toBeInstanceOf(Promise);
  expect(() => file.query("SELECT 1")).toThrow(
    expect.objectContaining({ status: 503, headers: { "retry-after": "1" } }),
  );
  await ready;
  expect(await write).toEqual({ n: 4_000 });
  expect(after.ready("large")).toBeUndefined();
  expect(file.query("SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'ix:%'").all()).toHaveLength(1);
  await after.close();
});
