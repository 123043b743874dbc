import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FileLayout } from "../../../schema/migrations/index.ts";
import { temporaryDirectory } from "../../../tests/support/index.ts";
import { layOut } from "./migrations.ts";

let sqlite: Database;

beforeEach(() => {
  sqlite = new Database(":memory:");
  sqlite.run("PRAGMA foreign_keys = ON");
});

afterEach(() => sqlite.close());

const FIRST = "CREATE TABLE a (n INTEGER PRIMARY KEY); CREATE TABLE b (n INTEGER REFERENCES a (n) ON DELETE CASCADE);";
const SECOND = "ALTER TABLE a ADD COLUMN m INTEGER; INSERT INTO a VALUES (1, {{m}}); INSERT INTO b VALUES (1);";
const REBUILD = `CREATE TABLE a_new (n INTEGER PRIMARY KEY, m TEXT); INSERT INTO a_new SELECT n, m FROM a;
  DROP TABLE a; ALTER TABLE a_new RENAME TO a;`;

const layout = (...steps: string[]): FileLayout => ({ name: "things", steps, unversioned: "SELECT 1" });
const values = (sql: string) => sqlite.query(sql).values();
const version = () => values("PRAGMA user_version")[0]?.[0];
const tables = () => values("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").flat();

test("[DB31] steps run once each, in order, and their number is the file's version", () => {
  layOut(layout(FIRST))(sqlite);
  expect([tables(), version()]).toEqual([["a", "b"], 1]);
  for (let turn = 0; turn < 2; turn++) layOut(layout(FIRST, SECOND), { m: 2 })(sqlite);
  expect([values("SELECT * FROM a"), version()]).toEqual([[[1, 2]], 2]);
});

test("[DB31] a step that rebuilds a table keeps the rows that refer to it, and foreign keys hold afterwards", () => {
  layOut(layout(FIRST, SECOND, REBUILD), { m: 2 })(sqlite);
  expect([values("SELECT * FROM a"), values("SELECT * FROM b")]).toEqual([[[1, "2"]], [[1]]]);
  expect(() => sqlite.run("INSERT INTO b VALUES (7)")).toThrow("FOREIGN KEY");
});

test("[DB31] a step that fails, or leaves a reference to nothing, is named and leaves no trace", () => {
  layOut(layout(FIRST))(sqlite);
  const wrong = { "INSERT INTO nowhere VALUES (1)": "no such table", "INSERT INTO b VALUES (7)": "1 rows refer" };
  for (const [sql, reason] of Object.entries(wrong)) {
    const open = () => layOut(layout(FIRST, `CREATE TABLE c (n INTEGER); ${sql};`))(sqlite);
    expect(open).toThrow("Step 2 of the things tables of :memory: failed");
    expect(open).toThrow(reason);
    expect([tables(), version()]).toEqual([["a", "b"], 1]);
  }
});

test("[DB31] where a later step fails, those before it leave no trace either", () => {
  const path = join(temporaryDirectory(), "a.db");
  const file = new Database(path);
  file.run(FIRST);
  const open = () => layOut(layout(FIRST, SECOND, "INSERT INTO nowhere VALUES (1)"), { m: 2 })(file);
  expect(open).toThrow("Step 3 of the things tables");
  expect(file.query("PRAGMA user_version").values()).toEqual([[0]]);
  expect(file.query("SELECT * FROM a").values()).toEqual([]);
  expect(open).toThrow("Step 3 of the things tables");
  expect(readdirSync(join(path, "..")).sort()).toEqual(["a.db", "a.db.v1"]);
  file.close();
});

test("[DB31] a file with tables and no version gets the version that its layout recognises", () => {
  sqlite.run(FIRST);
  layOut(layout(FIRST))(sqlite);
  expect(version()).toBe(1);
  sqlite.run("PRAGMA user_version = 0");
  layOut(layout(FIRST, SECOND), { m: 3 })(sqlite);
  expect([values("SELECT * FROM a"), version()]).toEqual([[[1, 3]], 2]);
});

test("[DB164] a file of a newer executable is refused by its name and version, and not changed", () => {
  layOut(layout(FIRST, SECOND), { m: 2 })(sqlite);
  expect(() => layOut(layout(FIRST))(sqlite)).toThrow(
    ":memory: has version 2 of the things tables, and this executable knows versions up to 1",
  );
  expect([values("SELECT * FROM a"), version()]).toEqual([[[1, 2]], 2]);
});

test("[DB300] a file with tables is copied before its steps, with what its WAL has; a new file is not", () => {
  const folder = temporaryDirectory();
  const path = join(folder, "a.db");
  const file = new Database(path);
  file.run("PRAGMA journal_mode = WAL");
  layOut(layout(FIRST))(file);
  expect(readdirSync(folder).filter((name) => name.includes(".v"))).toEqual([]);
  file.run("INSERT INTO a VALUES (7)");
  layOut(layout(FIRST, SECOND), { m: 2 })(file);
  using copy = new Database(`${path}.v1`, { readonly: true });
  expect([copy.query("SELECT * FROM a").values(), copy.query("PRAGMA user_version").values()]).toEqual([[[7]], [[1]]]);
  expect(file.query("SELECT n FROM a ORDER BY n").values()).toEqual([[1], [7]]);
  // Up to date: nothing is copied.
  layOut(layout(FIRST, SECOND), { m: 2 })(file);
  file.close();
  expect(readdirSync(folder).sort()).toEqual(["a.db", "a.db.v1"]);
});

test.if(process.platform === "linux")("[DB300] the copy leaves SQLite its lock on the file", () => {
  const path = join(temporaryDirectory(), "a.db");
  const file = new Database(path);
  file.run("PRAGMA journal_mode = WAL");
  layOut(layout(FIRST))(file);
  const place = `:${statSync(path).ino} `;
  const isLocked = (): boolean =>
    readFileSync("/proc/locks", "utf8")
      .split("\n")
      .some((line) => line.includes(` READ ${process.pid} `) && line.includes(place));
  expect(isLocked()).toBe(true);
  layOut(layout(FIRST, SECOND), { m: 2 })(file);
  // Without the lock, a program that closes the file takes itself for the last one and removes the WAL.
  expect(isLocked()).toBe(true);
  file.close();
});

test("[DB300] a file that cannot be copied is not upgraded", () => {
  const path = join(temporaryDirectory(), "a.db");
  const file = new Database(path);
  layOut(layout(FIRST))(file);
  // A folder blocks the path of the copy.
  mkdirSync(join(`${path}.v1`, "in the way"), { recursive: true });
  expect(() => layOut(layout(FIRST, SECOND), { m: 2 })(file)).toThrow("could not be copied");
  expect([file.query("PRAGMA user_version").values(), file.query("SELECT * FROM a").values()]).toEqual([[[1]], []]);
  expect(readdirSync(join(path, ".."))).toEqual(expect.arrayContaining(["a.db", "a.db.v1"]));
  expect(readdirSync(join(path, ".."))).toHaveLength(2);
  file.close();
});
