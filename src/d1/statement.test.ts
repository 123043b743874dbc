import { expect, test } from "bun:test";
import { parseStatement } from "./statement.ts";

const reads = [
  "SELECT 1",
  "select ';' , \"a;b\" -- ; end",
  "/* x ; */ SELECT 1 /* ; attach",
  "VALUES (1)",
  "EXPLAIN QUERY PLAN SELECT 1",
  "WITH a AS (SELECT 1) SELECT replace(x, 'a', 'b') FROM a",
  "WITH a(x) AS (VALUES (1)) VALUES (2)",
  "PRAGMA table_info(posts)",
  "PRAGMA main.index_list('posts')",
  "PRAGMA user_version",
  "SELECT * FROM pragma_table_info('posts')",
  "SELECT 1.5e3, 0x1F, .5, x'00', a->>'b', ?1, :a, @b, $c, [odd;name], `x` FROM t AS temp WHERE temp.a = 1",
  "SELECT load_extension FROM t",
];
const writes = [
  "INSERT INTO t VALUES (1)",
  "REPLACE INTO t VALUES (1)",
  "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
  "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) DELETE FROM t WHERE x IN a",
  "CREATE TABLE trigger (a)",
  "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO x VALUES (1); SELECT CASE WHEN 1 THEN 2 END; END",
  "CREATE TABLE temp (a)",
  "DROP TABLE t",
  "ALTER TABLE t ADD COLUMN b",
  "CREATE UNIQUE INDEX IF NOT EXISTS [main].i ON t (a)",
];

test("[DQ1] statements go to the connection that can run them", () => {
  for (const sql of reads) expect([sql, parseStatement(sql).mode]).toEqual([sql, "read"]);
  for (const sql of writes) expect([sql, parseStatement(sql).mode]).toEqual([sql, "write"]);
  expect(parseStatement("vacuum").mode).toBe("vacuum");
  expect(parseStatement("VACUUM 'main'").mode).toBe("vacuum");
});

test("[DQ4] one statement is cut out, with its semicolons and comments left aside", () => {
  expect(parseStatement(" ; -- a\n SELECT ';' ; ; /* b */").sql).toBe("SELECT ';'");
  expect(parseStatement(`${writes[5]} ;`).sql).toBe(writes[5] ?? "");
  for (const explain of ["EXPLAIN", "explain /* ; */ query plan"]) {
    expect(parseStatement(`${explain} ${writes[5]}`).mode).toBe("read");
    expect(() => parseStatement(`${explain} ${writes[5]}; SELECT 1`)).toThrow("must be one statement");
  }
});

test("[DQ4] several statements and none are refused", () => {
  const several = [
    "SELECT 1; SELECT 2",
    "SELECT 1; garbage",
    "SELECT ';'; DROP TABLE t",
    "SELECT 1 /* ; */; -- x\nDROP TABLE t",
    `${writes[5]}; DROP TABLE t`,
    "CREATE TABLE trigger (a); DROP TABLE t",
    "CREATE TABLE a (b); END; SELECT 1",
  ];
  for (const sql of several) expect(() => parseStatement(sql)).toThrow("must be one statement");
  for (const sql of ["", "  ", ";;", "-- x", "/* x"])
    expect(() => parseStatement(sql)).toThrow("must hold a statement");
  for (const sql of ["SELECT 'a", 'SELECT "a', "SELECT [a", "SELECT `a", "SELECT \\", "SELECT x'0'", "SELECT 1a"]) {
    expect(() => parseStatement(sql)).toThrow("unrecognized token");
  }
  expect(() => parseStatement("SELECT 1\0; DROP TABLE t")).toThrow("NUL");
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
  "CREATE VIRTUAL TABLE f USING fts5(name, file, content='pragma_database_list')",
];

test("[DQ5] what would leave the file or outlive the request is refused, however it is written", () => {
  for (const sql of escapes) expect(() => parseStatement(sql), sql).toThrow("not ");
});

test("[DQ5] a statement begins with a word that is known to be harmless", () => {
  for (const sql of ["SELEC 1", "'select' 1", "(SELECT 1)", "ſelect 1", "EXPLAIN EXPLAIN SELECT 1", "1", "EXPLAIN"]) {
    expect(() => parseStatement(sql), sql).toThrow("syntax error");
  }
});

test("[DQ3] a query that is no text, or too long, is refused", () => {
  expect(() => parseStatement(undefined)).toThrow("required");
  expect(() => parseStatement(5)).toThrow("must be a string");
  expect(() => parseStatement(`SELECT '${"x".repeat(1_000_000)}'`)).toThrow("at most");
});

test("[DQ4] long texts are cut as short ones are", () => {
  const long = `SELECT '${"''".repeat(400_000)}'`;
  expect(parseStatement(long).sql).toBe(long);
  expect(parseStatement(`SELECT 1 /*${"*".repeat(900_000)}`).sql).toBe("SELECT 1");
  expect(() => parseStatement(`${long}; SELECT 1`)).toThrow("must be one statement");
  expect(() => parseStatement(`SELECT "${'""'.repeat(400_000)}`)).toThrow();
});
