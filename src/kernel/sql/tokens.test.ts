import { expect, test } from "bun:test";
import { splitStatements, tokenizeSql } from "./tokens.ts";

const statements = (sql: string): string[] =>
  splitStatements(tokenizeSql(sql)).map((tokens) => sql.slice(tokens[0]?.start, tokens.at(-1)?.end));

test("a script is cut at the semicolons between its statements, and nowhere else", () => {
  expect(statements("")).toEqual([]);
  expect(statements(" ;; -- nothing\n;")).toEqual([]);
  expect(statements("a; b ;c")).toEqual(["a", "b", "c"]);
  expect(statements(`SELECT ';', ";", [;], \`;\` /* ; */ -- ;\n; END`)).toEqual([`SELECT ';', ";", [;], \`;\``, "END"]);
  const trigger =
    "CREATE TEMPORARY TRIGGER t AFTER INSERT ON x BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM y; END";
  for (const before of ["", "EXPLAIN ", "EXPLAIN QUERY PLAN "]) {
    expect(statements(`${before}${trigger}; COMMIT`)).toEqual([before + trigger, "COMMIT"]);
  }
  expect(statements("CREATE TABLE trigger_x (a); BEGIN; END")).toEqual(["CREATE TABLE trigger_x (a)", "BEGIN", "END"]);
  expect(tokenizeSql("SELECT 'a").at(-1)?.kind).toBe("illegal");
});
