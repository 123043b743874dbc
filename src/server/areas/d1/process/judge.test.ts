import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countedMarks, openSqlFile } from "../../../../../tests/support/d1-file.ts";
import { EscapeError, QueryError } from "../query.ts";
import { executeQuery, openConnection, type QueryConnection } from "./execute.ts";

let directory: string;
let reader: QueryConnection;
let writer: QueryConnection;
const nextMark = countedMarks();

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "d1-judge-"));
  const path = join(directory, "a.db");
  await openSqlFile(path).close();
  writer = openConnection(path, "writer");
  for (const sql of [
    "CREATE TABLE t (a, [odd;name])",
    "CREATE TABLE x (a)",
    "CREATE TABLE names (attach TEXT, pragma_note TEXT, load_extension, detach, begin_at, vacuum_into)",
    "CREATE TABLE pragma_note (a)",
    'CREATE TABLE "attach" (b)',
  ]) {
    await run(writer, sql);
  }
  reader = openConnection(path, "reader");
});
afterEach(() => {
  reader.database.close();
  writer.database.close();
  rmSync(directory, { recursive: true });
});

/** Runs a statement. Returns its answer; null: it needs the other role; a text: why it is refused. */
async function run(connection: QueryConnection, sql: string): Promise<object | null | string> {
  try {
    const text = await executeQuery(connection, { sql, params: [] }, nextMark);
    return text === null ? null : JSON.parse(text);
  } catch (cause) {
    if (cause instanceof QueryError) return cause.message;
    throw cause;
  }
}

const reads = [
  "SELECT 1",
  'SELECT * FROM pragma_note, "attach"',
  "SELECT 'pragma_database_list', 'load_extension(1)' AS detach",
  "select ';' , \"a;b\" -- ; end",
  "/* x ; */ SELECT 1 /* ; attach",
  "VALUES (1)",
  "EXPLAIN QUERY PLAN SELECT 1",
  "WITH a AS (SELECT 1) SELECT replace(1, 'a', 'b') FROM a",
  "WITH a(x) AS (VALUES (1)) VALUES (2)",
  "PRAGMA table_info(t)",
  "PRAGMA main.index_list('t')",
  "PRAGMA user_version",
  "SELECT * FROM pragma_table_info('t')",
  "SELECT 1.5e3, 0x1F, .5, x'00', a->>'b', [odd;name] FROM t AS temp WHERE temp.a = 1",
  "SELECT load_extension, attach, pragma_note FROM names",
];
const writes = [
  "INSERT INTO x VALUES (1)",
  "REPLACE INTO x VALUES (1)",
  "WITH a AS (SELECT 1) INSERT INTO x SELECT * FROM a",
  "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3) DELETE FROM t WHERE a IN c",
  "CREATE TABLE trigger (a)",
  "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO x VALUES (1); SELECT CASE WHEN 1 THEN 2 END; END",
  "CREATE TABLE temp (a)",
  "ALTER TABLE t ADD COLUMN b",
  "ALTER TABLE t RENAME COLUMN b TO begin_b",
  "ALTER TABLE trigger RENAME TO commit_log",
  "DROP TABLE commit_log",
  "CREATE UNIQUE INDEX IF NOT EXISTS [main].i ON t (a)",
];

test("[DQ101] a name is never taken for a keyword, and every statement runs where SQLite's own reading puts it", async () => {
  for (const sql of reads) {
    expect([sql, await run(writer, sql)]).toEqual([sql, null]);
    expect([sql, await run(reader, sql)]).toEqual([sql, expect.objectContaining({ results: expect.any(Array) })]);
  }
  for (const sql of writes) {
    expect([sql, await run(reader, sql)]).toEqual([sql, null]);
    expect([sql, typeof (await run(writer, sql))]).toEqual([sql, "object"]);
  }
  for (const sql of ["VACUUM", "vacuum 'main'", "ANALYZE", "REINDEX"]) {
    expect([sql, typeof (await run(writer, sql))]).toEqual([sql, "object"]);
  }
});

const escapes = [
  "ATTACH 'x' AS y",
  "/* c */ aTtAcH 'x' AS y",
  "-- c\nDETACH y",
  "EXPLAIN ATTACH 'x' AS y",
  "VACUUM INTO 'x'",
  "VACUUM main /* c */ INTO 'x'",
  "SELECT load_extension('x')",
  "SELECT \"LOAD_extension\" ('x')",
  "SELECT [load_extension]/**/('x')",
  "SELECT $a(') , load_extension(''x'') --')",
  "BEGIN",
  "BEGIN IMMEDIATE",
  "COMMIT",
  "END",
  "ROLLBACK TO a",
  "SAVEPOINT a",
  "RELEASE a",
  "PRAGMA user_version = 3",
  "PRAGMA user_version(3)",
  "PRAGMA main.journal_mode = delete",
  "PRAGMA writable_schema = 1",
  "PRAGMA /* c */ foreign_keys(0)",
  "PRAGMA wal_checkpoint",
  "PRAGMA optimize",
  "PRAGMA database_list",
  "PRAGMA temp_store_directory = '/'",
  "PRAGMA",
  "SELECT * FROM pragma_database_list",
  "CREATE TEMP TABLE a (b)",
  "CREATE TEMPORARY VIEW a AS SELECT 1",
  "CREATE TABLE IF NOT EXISTS temp.a (b)",
  'CREATE TABLE "Temp" . a (b)',
  "CREATE TRIGGER temp.g AFTER INSERT ON t BEGIN SELECT 1; END",
  "CREATE TABLE 'temp'.a (b)",
  'CREATE VIEW IF NOT EXISTS "temp".a AS SELECT 1',
  "CREATE UNIQUE INDEX [TEMP].i ON t (a)",
  "CREATE VIRTUAL TABLE `temp` . a USING fts5(b)",
  "\ufeffATTACH 'x' AS y",
  " \vATTACH 'x' AS y",
  "VACUUM \ufeffINTO 'x'",
  "VACUUM main\ufeff INTO 'x'",
  "\ufeffBEGIN",
  "CREATE \ufeffTEMP TABLE a (b)",
  "\ufeffPRAGMA journal_mode = delete",
  "SELECT * FROM 'pragma_database_list'",
  'SELECT * FROM "PRAGMA_database_list"',
  "SELECT * FROM main.[pragma_database_list]",
  "SELECT * FROM `pragma_database_list`",
  "SELECT #a('), file FROM pragma_database_list --')",
  "SELECT * FROM pragma_optimize",
  "SELECT * FROM pragma_wal_checkpoint",
];

test("[DQ5] what would leave the file or outlive the request is refused, however it is written", async () => {
  const files = readdirSync(directory).sort();
  for (const sql of escapes) {
    for (const connection of [reader, writer]) {
      const answer = await run(connection, sql);
      // The judge refuses it, with a reason: the check after the statement is not needed.
      if (answer !== null) expect([sql, answer]).toEqual([sql, expect.not.stringContaining("would have changed")]);
      if (connection.role === "reader" && answer === null)
        expect([sql, await run(writer, sql)]).toEqual([sql, expect.any(String)]);
    }
  }
  expect(readdirSync(directory).sort()).toEqual(files);
});

test("[DQ5] what is refused is also refused inside views, triggers and indexes, which run later", async () => {
  for (const sql of [
    "CREATE VIEW files AS SELECT file FROM pragma_database_list",
    "CREATE VIRTUAL TABLE f USING fts5(name, file, content='pragma_database_list')",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO x SELECT file FROM pragma_database_list; END",
  ]) {
    expect([sql, typeof (await run(writer, sql))]).toEqual([sql, "object"]);
  }
  expect(await run(reader, "SELECT * FROM files")).toContain("unsafe use of virtual table");
  expect(await run(reader, "SELECT file FROM f")).toEqual(expect.any(String));
  expect(await run(writer, "INSERT INTO t VALUES (1, 2)")).toEqual(expect.any(String));
  expect(await run(reader, "SELECT count(*) AS n FROM t")).toMatchObject({ results: [{ n: 0 }] });
});

const hidden = [
  "SELECT * FROM _platform_commit",
  "SELECT count(*) FROM _PLATFORM_COMMIT",
  'SELECT 1 FROM t, main."_Platform_Commit"',
  "WITH a AS (SELECT number FROM [_platform_commit]) SELECT * FROM a",
  "CREATE TABLE copied AS SELECT * FROM _platform_commit",
  "INSERT INTO _platform_commit VALUES (1, 1, 1, 1, 1, '')",
  "REPLACE INTO _platform_commit VALUES (0, 1, 1, 1, 1, '')",
  "UPDATE _platform_commit SET number = 1",
  "DELETE FROM _platform_commit",
  "DROP TABLE _platform_commit",
  "ALTER TABLE _platform_commit RENAME TO mine",
  "ALTER TABLE _platform_commit ADD COLUMN mine",
  "ALTER TABLE _platform_commit DROP COLUMN at",
  "CREATE INDEX i ON _platform_commit (number)",
  "CREATE TRIGGER g AFTER UPDATE ON _platform_commit BEGIN INSERT INTO x VALUES (new.number); END",
];

test("[DB362] the server's table of a database is read and changed by no query, also through views, triggers and indexes", async () => {
  for (const sql of hidden) {
    for (const connection of [reader, writer]) {
      const answer = await run(connection, sql);
      if (answer !== null) expect([sql, answer]).toEqual([sql, "The table _platform_commit is the server's own"]);
      else expect([sql, connection.role]).toEqual([sql, connection.role === "reader" ? "reader" : "writer"]);
    }
  }
  for (const sql of [
    "CREATE VIEW commits AS SELECT * FROM _platform_commit",
    "CREATE VIRTUAL TABLE texts USING fts5(file, content='_platform_commit')",
    "CREATE TRIGGER h AFTER INSERT ON t BEGIN DELETE FROM _platform_commit; END",
    "CREATE TABLE child (a REFERENCES _platform_commit (id) ON UPDATE CASCADE)",
  ]) {
    expect([sql, typeof (await run(writer, sql))]).toEqual([sql, "object"]);
  }
  for (const sql of ["SELECT * FROM commits", "SELECT file FROM texts", "SELECT count(*) FROM commits"]) {
    expect([sql, await run(reader, sql)]).toEqual([sql, expect.any(String)]);
  }
  expect(await run(writer, "INSERT INTO t VALUES (1, 2)")).toEqual(expect.any(String));
  expect(await run(writer, "INSERT INTO child VALUES (0)")).toEqual(expect.any(String));
  for (const sql of ["VACUUM", "ANALYZE", "REINDEX", "DROP TABLE child", "DROP TRIGGER h"]) {
    expect([sql, typeof (await run(writer, sql))]).toEqual([sql, "object"]);
  }
  const before = writer.database.prepare("SELECT number FROM _platform_commit").get();
  expect(await run(writer, "INSERT INTO t VALUES (1, 2)")).toEqual(expect.any(Object));
  const after = writer.database.prepare("SELECT number, nonce FROM _platform_commit").get();
  expect(after).toEqual({ number: Number(before?.["number"]) + 1, nonce: 1 });
});

test("[DB362] during a VACUUM the row has an open mark, and a number of its own afterwards", async () => {
  const rows: unknown[] = [];
  let number = 100;
  const watched = async () => {
    rows.push(reader.database.prepare("SELECT number, nonce FROM _platform_commit").get());
    number += 1;
    return { number, nonce: 7, at: 0, place: number, file: "test" };
  };
  await executeQuery(writer, { sql: "VACUUM", params: [] }, watched);
  rows.push(reader.database.prepare("SELECT number, nonce FROM _platform_commit").get());
  expect(rows.slice(1)).toEqual([
    { number: 101, nonce: 0 },
    { number: 102, nonce: 7 },
  ]);
});

test("[DQ17] a connection that has something attached, open or temporary is closed", async () => {
  for (const sql of ["ATTACH ':memory:' AS elsewhere", "BEGIN", "CREATE TEMP TABLE a (b)"]) {
    const connection = openConnection(join(directory, "a.db"), "writer");
    connection.database.exec(sql);
    await expect(executeQuery(connection, { sql: "ANALYZE", params: [] }, nextMark), sql).rejects.toThrow(EscapeError);
    connection.database.close();
  }
});

test("[DQ5] a text that is not a statement is refused with SQLite's message", async () => {
  for (const sql of [
    "SELEC 1",
    "'select' 1",
    "(SELECT 1)",
    "\u017felect 1",
    "EXPLAIN EXPLAIN SELECT 1",
    "1",
    "EXPLAIN",
  ]) {
    expect([sql, await run(reader, sql)]).toEqual([sql, expect.stringMatching(/syntax error|incomplete input/)]);
  }
});
