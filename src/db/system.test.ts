import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemMigrations } from "../../schema/migrations/index.ts";
import { systemClock } from "../kernel/clock.ts";
import { createStorageEngine } from "./engine.ts";
import { migrateSystem, openSystemFile } from "./system.ts";

let sqlite: Database;

beforeEach(() => {
  sqlite = new Database(":memory:");
});

afterEach(() => sqlite.close());

const first = { name: "001_first", sql: "CREATE TABLE a (n INTEGER); CREATE TABLE b (n INTEGER);" };
const second = { name: "002_second", sql: "ALTER TABLE a ADD COLUMN m INTEGER; INSERT INTO a VALUES (1, 2);" };
const broken = { name: "003_broken", sql: "CREATE TABLE c (n INTEGER); INSERT INTO nowhere VALUES (1);" };

const tables = () =>
  sqlite.query("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_%' ESCAPE '\\'").values().flat();

test("[DB31] steps run once each, in order", () => {
  migrateSystem(sqlite, [first]);
  expect(tables()).toEqual(["a", "b"]);
  migrateSystem(sqlite, [first, second]);
  migrateSystem(sqlite, [first, second]);
  expect(sqlite.query("SELECT * FROM a").values()).toEqual([[1, 2]]);
});

test("[DB31] a step that fails is named, and leaves nothing of itself", () => {
  expect(() => migrateSystem(sqlite, [first, second, broken])).toThrow("003_broken");
  expect(tables()).toEqual(["a", "b"]);
  expect(sqlite.query("SELECT count(*) AS n FROM _migrations").get()).toEqual({ n: 2 });
});

test("[DB31] a file of a later version is refused", () => {
  migrateSystem(sqlite, [first, second]);
  expect(() => migrateSystem(sqlite, [first])).toThrow("later version of the server (002_second)");
});

test("[DB31] system.db has every table of the schema, and keeps what it has been given", async () => {
  const directory = mkdtempSync(join(tmpdir(), "system-"));
  const engine = createStorageEngine({ clock: systemClock });
  const file = openSystemFile(engine, directory);
  const names = file.query(`SELECT name FROM _migrations ORDER BY name`).values().flat();
  expect(names).toEqual(systemMigrations.map(({ name }) => name).sort());
  await file.close();
  openSystemFile(engine, directory);
  await engine.stop();
  rmSync(directory, { recursive: true });
});
