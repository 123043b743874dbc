import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compiler } from "../../../scripts/typescript.ts";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { platformCommand, type TestPlatform, temporaryDirectory } from "../../support/index.ts";
import { type Moved, migrate, moved, started } from "./moved.ts";

// A database of SQLite, as any program may have made it.

setDefaultTimeout(120_000);

const SCHEMA = `
CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(40) NOT NULL UNIQUE, is_admin BOOLEAN NOT NULL DEFAULT 0,
  joined DATETIME DEFAULT CURRENT_TIMESTAMP, born DATE, points REAL DEFAULT 1.5, score NUMERIC(6,2), facts JSON, picture BLOB);
CREATE TABLE posts (slug TEXT PRIMARY KEY, author_id INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  editor_id INTEGER REFERENCES users, title TEXT NOT NULL CHECK (length(title) > 1), size INT, big BIGINT, mixed INT,
  words INT GENERATED ALWAYS AS (length(title)) VIRTUAL);
CREATE INDEX posts_by_author ON posts (author_id, title);
CREATE UNIQUE INDEX posts_short ON posts (size) WHERE size < 10;
CREATE INDEX posts_lower ON posts (lower(title));
CREATE TABLE tagged (post TEXT NOT NULL REFERENCES posts(slug), tag TEXT NOT NULL, at TIMESTAMP, PRIMARY KEY (post, tag)) WITHOUT ROWID;
CREATE TABLE log (line TEXT, "select" TEXT, createdAt TEXT);
CREATE VIEW titles AS SELECT title FROM posts;
CREATE TRIGGER t AFTER INSERT ON posts BEGIN SELECT 1; END;
CREATE VIRTUAL TABLE found USING fts5(title);
`;
const ROWS = `
INSERT INTO users (name, is_admin, joined, born, points, score, facts, picture) VALUES
  ('ann', 1, '2024-05-06 04:00:00', '2000-02-29', 2.25, 10, '{"a":[1,null]}', x'00ff'),
  ('bob', 0, '2024-05-06T06:00:00.5+02:00', NULL, 1e21, 0.1, 'null', NULL);
INSERT INTO posts (slug, author_id, editor_id, title, size, big, mixed) VALUES
  ('a', 1, 2, 'First', 3, 9007199254740993, 1), ('b', 2, 77, 'Second', NULL, -5, 'many');
INSERT INTO tagged VALUES ('a', 'x', '2024-01-02 03:04:05.678'), ('b', 'y', NULL);
INSERT INTO log VALUES ('one', 's', 'c'), (NULL, NULL, NULL);
`;

let file: string;
let made: Moved;
let platform: TestPlatform;
beforeAll(async () => {
  file = join(temporaryDirectory(), "old.sqlite");
  using sqlite = new Database(file);
  sqlite.run("PRAGMA foreign_keys = OFF");
  sqlite.run(SCHEMA + ROWS);
  made = await moved(file);
  platform = await started(made);
});
afterAll(() => platform?.stop());

const record = async (table: string, id: string): Promise<JsonObject> =>
  (await platform.service.get<JsonObject>(`/api/db/shared/tables/${table}/${id}`)).body;

test("[MG80] [MG81] tables become tables, with keys, types, references, indexes and every value", async () => {
  expect(await record("users", "1")).toEqual({
    ...{ id: "1", name: "ann", is_admin: true, joined: "2024-05-06T04:00:00.000Z", born: "2000-02-29", points: 2.25 },
    ...{ score: 10, facts: { a: [1, null] }, picture: "AP8=" },
  });
  expect(await record("users", "2")).toMatchObject({
    ...{ joined: "2024-05-06T04:00:00.500Z", born: null, points: 1e21, score: 0.1, facts: null },
  });
  // One number is larger than a double holds, and one value is no number.
  expect(await record("posts", "a")).toEqual({
    ...{ id: "a", author_id: "1", editor_id: "2", title: "First", size: 3, big: "9007199254740993", mixed: "1" },
  });
  expect(await record("posts", "b")).toMatchObject({ editor_id: null, size: null, big: "-5", mixed: "many" });
  expect(await record("tagged", "a~x")).toEqual({ id: "a~x", post: "a", tag: "x", at: "2024-01-02T03:04:05.678Z" });
  expect(await record("log", "2")).toMatchObject({ line: null });
  expect(made.config).toContain(
    'author_id: { references: "users", required: true, onDelete: "cascade", mayBeHidden: true }',
  );
  expect(made.config).toContain('{ fields: ["author_id", "title"] }');
  expect(made.config).toContain('name: { type: "text", required: true, unique: true }');
  expect(made.config).toContain('is_admin: { type: "boolean", required: true, default: false }');
  expect(made.config).toContain('joined: record["joined"] ?? new Date().toISOString()');
});

test("[MG82] nobody has a right but service keys, nobody signs up, and the report says what was not moved", async () => {
  expect((await platform.get("/api/db/shared/tables/users")).status).toBe(401);
  const account = { email: "eve@example.com", password: "correct horse battery" };
  expect((await platform.post("/api/auth/signup", account)).status).toBe(403);
  for (const text of [
    "| posts | 2 | 2 |",
    "**posts.editor_id**: 1 references to records that do not exist, such as 77: they are null",
    "**posts.words**: a column that is computed",
    "**posts**: its CHECKs",
    "**users.picture**: its bytes are texts in base64 here",
    "CREATE VIEW titles AS",
    "CREATE TRIGGER t AFTER",
    "**found**: a virtual table",
    "service keys alone read and write",
  ]) {
    expect(made.report).toContain(text);
  }
  expect(made.report).not.toContain(" there, ");
});

test("[MG5] the config passes check and TypeScript", () => {
  const config = join(made.directory, "platform.config.ts");
  const checked = Bun.spawnSync([...platformCommand(), "check", "--config", config]);
  expect([checked.exitCode, checked.stdout.toString()]).toEqual([0, expect.stringContaining("is fine")]);
  Bun.spawnSync([...platformCommand(), "init", made.directory]);
  const { exitCode, stdout } = Bun.spawnSync([...compiler(), "-p", join(made.directory, "tsconfig.json")]);
  expect([exitCode, stdout.toString()]).toEqual([0, ""]);
});

test("[MG80] --plan writes nothing, another file is refused, and --again brings what has changed", async () => {
  const before = readFileSync(file);
  const directory = join(temporaryDirectory(), "app");
  const plan = await migrate(file, "--into", directory, "--plan");
  expect([plan.code, existsSync(directory), plan.stdout.startsWith(made.config)]).toEqual([0, false, true]);
  const other = join(temporaryDirectory(), "a.sqlite");
  writeFileSync(other, `SQLite format 3\0${"x".repeat(5000)}`);
  expect(await migrate(other, "--plan")).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be read") });
  expect(readFileSync(file).equals(before)).toBe(true);

  await platform.kill("SIGTERM");
  using sqlite = new Database(file);
  sqlite.run("UPDATE posts SET title = 'Changed' WHERE slug = 'a'; INSERT INTO log VALUES ('three', NULL, NULL)");
  expect((await migrate(file, "--into", made.directory, "--again")).code).toBe(0);
  platform = await started(made);
  expect([await record("posts", "a"), await record("log", "3")]).toMatchObject([
    { title: "Changed" },
    { line: "three" },
  ]);
});
