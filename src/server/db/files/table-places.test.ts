import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { layOut } from "../migrations.ts";
import type { OpenedFile, StorageEngine } from "../types.ts";

let directory: string;
let path: string;
let engine: StorageEngine;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "places-"));
  path = join(directory, "a.db");
  engine = createStorageEngine({ clock: systemClock });
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

function open(placesKey = "key"): OpenedFile {
  return engine.open(path, {
    places: { key: placesKey },
    migrate(sqlite, commits) {
      layOut(tablesLayout)(sqlite, commits);
      sqlite.run("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY) STRICT");
    },
  });
}

const insert = (file: OpenedFile, id: string): Promise<void> =>
  file.write((tx) => {
    tx.query("INSERT INTO items VALUES (?)").run(id);
    tx.change({ table: "items", id, before: null, after: { id } });
  });
const placeIn = (file: OpenedFile): number =>
  file.query<{ place: number }>("SELECT place FROM _platform_commit").get()?.place ?? Number.NaN;
const formerOf = (file: OpenedFile, table = "items") => file.startOf(table)?.former ?? null;

test("[DB364] the next opening knows the place that the log of a table has reached, if nothing has changed it since", async () => {
  let file = open();
  expect(formerOf(file)).toBeNull();
  const idle = file.startOf("others")?.place ?? 0;
  await insert(file, "a");
  const last = placeIn(file);
  await file.close();
  file = open();
  expect(formerOf(file)).toBe(last);
  expect(file.startOf("others")).toEqual({ place: expect.any(Number), former: idle });
  expect(formerOf(file, "unknown")).toBeNull();
  await insert(file, "b");
  expect(formerOf(file)).toBeNull();
  const later = placeIn(file);
  await file.close();
  // It stays known where nobody asks in between, whatever else is committed.
  file = open();
  await file.write((tx) => void tx.query("CREATE TABLE more (x)").run());
  await file.close();
  file = open();
  expect(formerOf(file)).toBe(later);
});

test("[DB364] a place is forgotten under another key, after a kill, and after a change by others", async () => {
  let file = open();
  file.startOf("items");
  await insert(file, "a");
  // As a kill leaves the files.
  for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, `${path}.killed${suffix}`);
  await file.close();
  file = open("another key");
  expect(formerOf(file)).toBeNull();
  await file.close();
  for (const suffix of ["", "-wal"]) copyFileSync(`${path}.killed${suffix}`, path + suffix);
  file = open();
  expect(formerOf(file)).toBeNull();
  await file.close();
  const gate = (sqlite: Database) => engine.gate(sqlite, { isRewritten: false });
  {
    using sqlite = new Database(path);
    const other = gate(sqlite);
    other.open(() => {});
    other.transaction(() => sqlite.run("DELETE FROM items"));
    other.close();
  }
  file = open();
  expect(formerOf(file)).toBeNull();
});
