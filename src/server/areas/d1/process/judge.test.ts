import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemIds } from "../../../../kernel/ids.ts";
import { keepDatabaseFile } from "../database-file.ts";
import { EscapeError, QueryError } from "../query.ts";
import { executeQuery, openConnection, type QueryConnection } from "./execute.ts";

let directory: string;
let reader: QueryConnection;
let writer: QueryConnection;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "d1-judge-"));
  const path = join(directory, "a.db");
  keepDatabaseFile(path, systemIds).close();
  writer = openConnection(path, "writer");
  for (const sql of [
    "CREATE TABLE t (a, [odd;name])",
    "CREATE TABLE x (a)",
    "CREATE TABLE names (attach TEXT, pragma_note TEXT, load_extension, detach, begin_at, vacuum_into)",
    "CREATE TABLE pragma_note (a)",
    'CREATE TABLE "attach" (b)',
  ]) {
    run(writer, sql);
  }
  reader = openConnection(path, "reader");
});
afterEach(() => {
  reader.database.close();
  writer.database.close();
  rmSync(directory, { recursive: true });
});

/** Runs a statement. Returns its answer; null: it needs the other role; a text: why it is refused. */
function run(connection: QueryConnection, sql: string): object | null | string {
  try {
    const text = executeQuery(connection, { sql, params: [] });
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

test("[DQ101] a name is never taken for a keyword, and every statement runs where SQLite's own reading puts it", () => {
  for (const sql of reads) {
    expect([sql, run(writer, sql)]).toEqual([sql, null]);
    expect([sql, run(reader, sql)]).toEqual([sql, expect.objectContaining({ results: expect.any(Array) })]);
  }
  for (const sql of writes) {
    expect([sql, run(reader, sql)]).toEqual([sql, null]);
    expect([sql, typeof run(writer, sql)]).toEqual([sql, "object"]);
  }
  for (const sql of ["VACUUM", "vacuum 'main'", "ANALYZE", "REINDEX"]) {
    expect([sql, typeof run(writer, sql)]).toEqual([sql, "object"]);
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

test("[DQ5] what would leave the file or outlive the request is refused, however it is written", () => {
  const files = readdirSync(directory).sort();
  for (const sql of escapes) {
    for (const connection of [reader, writer]) {
      const answer = run(connection, sql);
      // The judge refuses it, with a reason: the check after the statement is not needed.
      if (answer !== null) expect([sql, answer]).toEqual([sql, expect.not.stringContaining("would have changed")]);
      if (connection.role === "reader" && answer === null)
        expect([sql, run(writer, sql)]).toEqual([sql, expect.any(String)]);
    }
  }
  expect(readdirSync(directory).sort()).toEqual(files);
});

test("[DQ5] what is refused is also refused inside views, triggers and indexes, which run later", () => {
  for (const sql of [
    "CREATE VIEW files AS SELECT file FROM pragma_database_list",
    "CREATE VIRTUAL TABLE f USING fts5(name, file, content='pragma_database_list')",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO x SELECT file FROM pragma_database_list; END",
  ]) {
    expect([sql, typeof run(writer, sql)]).toEqual([sql, "object"]);
  }
  expect(run(reader, "SELECT * FROM files")).toContain("unsafe use of virtual table");
  expect(run(reader, "SELECT file FROM f")).toEqual(expect.any(String));
  expect(run(writer, "INSERT INTO t VALUES (1, 2)")).toEqual(expect.any(String));
  expect(run(reader, "SELECT count(*) AS n FROM t")).toMatchObject({ results: [{ n: 0 }] });
});

test("[DQ17] a connection that has something attached, open or temporary is closed", () => {
  for (const sql of ["ATTACH ':memory:' AS elsewhere", "BEGIN", "CREATE TEMP TABLE a (b)"]) {
    const connection = openConnection(join(directory, "a.db"), "writer");
    connection.database.exec(sql);
    expect(() => executeQuery(connection, { sql: "ANALYZE", params: [] }), sql).toThrow(EscapeError);
    connection.database.close();
  }
});

test("[DQ5] a text that is not a statement is refused with SQLite's message", () => {
  for (const sql of [
    "SELEC 1",
    "'select' 1",
    "(SELECT 1)",
    "\u017felect 1",
    "EXPLAIN EXPLAIN SELECT 1",
    "1",
    "EXPLAIN",
  ]) {
    expect([sql, run(reader, sql)]).toEqual([sql, expect.stringMatching(/syntax error|incomplete input/)]);
  }
});
