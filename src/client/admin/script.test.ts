import { expect, test } from "bun:test";
import { sqlErrorPlace, sqlStatements } from "./script.ts";

const kinds = (script: string) => sqlStatements(script).map(({ kind }) => kind);

test("[TC340] a script is cut where SQLite cuts it, with the place of each statement", () => {
  const script = "SELECT ';' -- ; no\n;\n;CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END; VALUES (1)";
  const statements = sqlStatements(script);
  expect(statements.map(({ text }) => text)).toEqual([
    "SELECT ';'",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END",
    "VALUES (1)",
  ]);
  for (const { text, from, to } of statements) expect(script.slice(from, to)).toBe(text);
  expect(sqlStatements(" ; -- nothing\n")).toEqual([]);
});

test("[TC340] statements that write are known by their words", () => {
  expect(kinds("SELECT 1; VALUES (2); PRAGMA user_version; EXPLAIN DELETE FROM a")).toEqual(Array(4).fill("read"));
  expect(kinds("WITH a AS (SELECT 1) SELECT replace(a, 'b', 'c') FROM a")).toEqual(["read"]);
  expect(kinds("WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a; UPDATE a SET b = 1; DROP TABLE a")).toEqual(
    Array(3).fill("write"),
  );
});

test("[TC340] an error is placed at the word that its message names, where the statement has it once", () => {
  const place = (script: string, message: string, at = 0) => {
    const statement = sqlStatements(script)[at];
    const found = statement === undefined ? null : sqlErrorPlace(script, statement, message);
    return found === null ? null : script.slice(found.from, found.to);
  };
  expect(place("SELECT 1; SELECT * FORM films", 'near "FORM": syntax error', 1)).toBe("FORM");
  expect(place('SELECT "no such" FROM films', "no such column: f.no such")).toBeNull();
  expect(place("SELECT f.titel FROM films f", "no such column: f.titel")).toBe("titel");
  expect(place("SELECT nosuch, nosuch FROM films", "no such column: nosuch")).toBeNull();
  expect(place("SELECT 1", "interrupted")).toBeNull();
});
