import { expect, test } from "bun:test";
import { bindings, parseStatement } from "./statement.ts";

const TRIGGER = "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO x VALUES (1); SELECT CASE WHEN 1 THEN 2 END; END";

test("[DQ4] one statement is found, without its semicolons and comments", () => {
  expect(parseStatement(" ; -- a\n SELECT ';' ; ; /* b */").sql).toBe("SELECT ';'");
  expect(parseStatement(`${TRIGGER} ;`).sql).toBe(TRIGGER);
  for (const explain of ["EXPLAIN", "explain /* ; */ query plan"]) {
    expect(parseStatement(`${explain} ${TRIGGER}`).kind).toBe("explained");
    expect(() => parseStatement(`${explain} ${TRIGGER}; SELECT 1`)).toThrow("must be one statement");
  }
});

test("[DQ4] several statements and none are refused", () => {
  const several = [
    "SELECT 1; SELECT 2",
    "SELECT 1; garbage",
    "SELECT ';'; DROP TABLE t",
    "SELECT 1 /* ; */; -- x\nDROP TABLE t",
    `${TRIGGER}; DROP TABLE t`,
    "CREATE TABLE trigger (a); DROP TABLE t",
    "CREATE TABLE a (b); END; SELECT 1",
  ];
  for (const sql of several) expect(() => parseStatement(sql)).toThrow("must be one statement");
  for (const sql of ["", "  ", ";;", "-- x", "/* x"])
    expect(() => parseStatement(sql)).toThrow("must hold a statement");
  for (const sql of ["SELECT 'a", 'SELECT "a', "SELECT [a", "SELECT `a", "SELECT \\", "SELECT x'0'", "SELECT 1a"]) {
    expect(() => parseStatement(sql)).toThrow("unrecognized token");
  }
});

test("[DQ4] long texts are split like short ones", () => {
  const long = `SELECT '${"''".repeat(400_000)}'`;
  expect(parseStatement(long).sql).toBe(long);
  expect(parseStatement(`SELECT 1 /*${"*".repeat(900_000)}`).sql).toBe("SELECT 1");
  expect(() => parseStatement(`${long}; SELECT 1`)).toThrow("must be one statement");
  expect(() => parseStatement(`SELECT "${'""'.repeat(400_000)}`)).toThrow();
});

test("[DQ3] parameters are counted and named as SQLite numbers them", () => {
  const numbered: [string, (string | null)[]][] = [
    ["SELECT ?, ?", [null, null]],
    ["SELECT ?2, ?1", [null, null]],
    ["SELECT ?3, ?", [null, null, null, null]],
    ["SELECT :a, ?, :a, @b, $c::d(e)", [":a", null, "@b", "$c::d(e)"]],
    ["SELECT '?' || \"?\" -- ?", []],
  ];
  for (const [sql, parameters] of numbered) expect([sql, parseStatement(sql).parameters]).toEqual([sql, parameters]);
  expect(bindings([":a", null, "@b"], [1, true, null])).toEqual([{ ":a": 1n, "@b": null }, 1n]);
});
