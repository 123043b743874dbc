import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { boundsOf } from "../files/descriptors.ts";
import type { Declaration } from "../schema/types.ts";
import type { DatabaseFile, StorageEngine } from "../types.ts";
import { createInstanceFiles, type InstanceFiles } from "./instance-files.ts";

const idColumn = { name: "id", type: "TEXT" as const, notNull: true, unique: false, check: null, references: null };
const items = { name: "items", kind: "", columnKinds: {}, columns: [idColumn], indexes: [], fts: null, migrations: [] };
const declaration: Declaration = { tables: [items], options: {} };

let directory: string;
let engine: StorageEngine;
let instances: InstanceFiles;
let replaced: string[];

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "replacing-")), "clubs");
  engine = createStorageEngine({ clock: systemClock });
  replaced = [];
  instances = createInstanceFiles(engine, {
    directory,
    bounds: boundsOf(8),
    declaration,
    onReplace: (instanceId) => replaced.push(instanceId),
  });
});

afterEach(async () => {
  await instances.close();
  await engine.stop();
  rmSync(join(directory, ".."), { recursive: true });
});

const use = (instanceId: string): DatabaseFile => {
  const file = instances.get(instanceId, { create: true });
  if (file === null) throw new Error("create gives a file");
  return file;
};

const insert = (instanceId: string, id: string): Promise<void> =>
  use(instanceId).write((tx) => {
    tx.query("INSERT INTO items VALUES (?)").run(id);
    tx.change({ table: "items", id, before: null, after: { id } });
  });

async function idsOf(instanceId: string): Promise<string[]> {
  await use(instanceId).ready();
  return use(instanceId)
    .query<{ id: string }>("SELECT id FROM items ORDER BY id")
    .all()
    .map(({ id }) => id);
}

const commitOf = (instanceId: string) =>
  use(instanceId).query<{ number: number; file: string }>('SELECT "number", "file" FROM "_platform_commit"').get();

/** Copies the file of an instance as it is now. */
async function copyOf(instanceId: string): Promise<string> {
  const copy = join(directory, "..", `${instanceId}.copy`);
  await use(instanceId).close();
  copyFileSync(join(directory, `${instanceId}.db`), copy);
  return copy;
}

test("[DB370] the content of an instance is replaced by one commit with the next number, and its former records are gone", async () => {
  for (const id of ["1", "2"]) await insert("red", id);
  const copy = await copyOf("red");
  for (const id of ["3", "4"]) await insert("red", id);
  const before = commitOf("red");
  await instances.replace("red", copy);
  expect(await idsOf("red")).toEqual(["1", "2"]);
  const after = commitOf("red");
  expect(after?.file).toBe(before?.file ?? "");
  expect(after?.number).toBeGreaterThan(before?.number ?? 0);
  expect(replaced).toEqual(["red"]);
  await insert("red", "5");
  expect(await idsOf("red")).toEqual(["1", "2", "5"]);
});

test("[DB370] writes that come meanwhile wait, and follow on the new content", async () => {
  await insert("red", "1");
  const copy = await copyOf("red");
  await insert("red", "2");
  const replacing = instances.replace("red", copy);
  const writes = ["3", "4", "5"].map((id) => insert("red", id));
  await replacing;
  await Promise.all(writes);
  expect(await idsOf("red")).toEqual(["1", "3", "4", "5"]);
});

test("[DB370] jobs and audit entries that were not passed on yet stay, and those of the other content do not come back", async () => {
  await insert("red", "1");
  const copy = await copyOf("red");
  using source = new Database(copy);
  const rows = 'CREATE TABLE "_platform_outbox" ("seq" INTEGER PRIMARY KEY, "id" TEXT NOT NULL) STRICT';
  source.run(rows);
  source.run(`INSERT INTO "_platform_outbox" VALUES (1, 'old')`);
  source.close();
  await insert("red", "2");
  await use("red").close();
  using live = new Database(join(directory, "red.db"));
  live.run(rows);
  live.run(`INSERT INTO "_platform_outbox" VALUES (7, 'waiting')`);
  live.close();
  await instances.replace("red", copy);
  await use("red").ready();
  expect(use("red").query('SELECT * FROM "_platform_outbox"').all()).toEqual([{ seq: 7, id: "waiting" }]);
});

test("[DB370] an instance that was deleted is made again, and what cannot be read leaves the content as it was", async () => {
  await insert("red", "1");
  const copy = await copyOf("red");
  await instances.delete("red");
  await instances.replace("red", copy);
  expect(await idsOf("red")).toEqual(["1"]);
  await insert("red", "2");
  await expect(instances.replace("red", join(directory, "..", "missing", "copy"))).rejects.toThrow();
  expect(await idsOf("red")).toEqual(["1", "2"]);
});
