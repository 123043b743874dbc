import { Database } from "bun:sqlite";
import { reasonOf } from "../../../../kernel/errors.ts";
import { splitStatements, tokenizeSql } from "../../../../kernel/sql/tokens.ts";
import { isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";
import { COLUMN_TYPES, quote } from "./view-sample.ts";

type Fields = ReadonlyMap<string, { type: string }>;

/** Statements that end the transaction of all migrations, fail in it, or change what it cannot roll back. */
const NOT_IN_MIGRATIONS = new Set("begin commit end rollback savepoint release attach detach vacuum pragma".split(" "));

/** Describes what prevents a migration from running inside one transaction with all others; null when nothing does. */
export function migrationProblem(sql: string): string | null {
  const tokens = tokenizeSql(sql);
  const illegal = tokens.find(({ kind }) => kind === "illegal");
  if (illegal !== undefined) return `is not valid SQL from here: ${sql.slice(illegal.start, illegal.start + 20)}`;
  for (const [first] of splitStatements(tokens)) {
    if (first?.kind !== "word" || !NOT_IN_MIGRATIONS.has(first.text)) continue;
    return `must not contain ${first.text.toUpperCase()}: all migrations run in one transaction, which is rolled back when one fails`;
  }
  return null;
}

/** Tests every `check` of a table on an empty in-memory table with the same columns. */
export function checkExpressions(schema: PlainObject, fields: Fields, report: Report): void {
  const checks = Object.entries(schema).flatMap(([name, field]) => {
    const check: unknown = isPlainObject(field) ? field["check"] : undefined;
    return typeof check === "string" && check !== "" ? [{ name, check }] : [];
  });
  if (checks.length === 0) return;
  const columns = [...fields].map(([name, { type }]) => `${quote(name)} ${COLUMN_TYPES[type] ?? "TEXT"}`);
  using database = new Database(":memory:");
  for (const { name, check } of checks) {
    try {
      // Tests it as an expression first: one with an extra closing parenthesis could end the constraint and continue after it.
      database.run(`CREATE TABLE facts (${columns.join(", ")})`);
      database.prepare(`SELECT (${check}\n) FROM facts`).finalize();
      database.run("DROP TABLE facts");
      database.run(`CREATE TABLE facts (${columns.join(", ")}, CHECK (${check}\n))`);
    } catch (cause) {
      const reason = reasonOf(cause);
      report.at(name).at("check").say(`is not an expression that SQLite understands: ${reason}`);
    } finally {
      database.run("DROP TABLE IF EXISTS facts");
    }
  }
}
