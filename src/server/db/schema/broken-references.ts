import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";

/** Values that a message names. */
const NAMED_MAX = 5;

/** A field with references. `toColumn`: null for a field of several, whose values are ids. */
interface Referring {
  table: string;
  column: string;
  to: string;
  toColumn: string | null;
  /** Whether it cannot be null. */
  isRequired: boolean;
}

/** Stored references to nothing. `sql`: a statement that ends them. */
interface Broken {
  count: number;
  values: string[];
  to: string;
  sql: string;
}

/** Finds the records that refer to nothing; null: there are none, or a column is still missing, so that a later step finds them. */
export function countBrokenReferences(sqlite: Database, referring: Referring): Broken | null {
  const { table, column, to, toColumn, isRequired } = referring;
  const own = quote(column);
  const known = `SELECT ${quote(toColumn ?? "id")} FROM ${quote(to)}`;
  const each = `json_each(${quote(table)}.${own}) AS e`;
  const broken =
    toColumn === null
      ? `EXISTS (SELECT 1 FROM ${each} WHERE e.value NOT IN (${known}))`
      : `${own} IS NOT NULL AND ${own} NOT IN (${known})`;
  const values =
    toColumn === null
      ? `SELECT DISTINCT e.value FROM ${quote(table)}, ${each} WHERE e.value NOT IN (${known})`
      : `SELECT DISTINCT ${own} FROM ${quote(table)} WHERE ${broken}`;
  const kept = `(SELECT json_group_array(e.value) FROM ${each} WHERE e.value IN (${known}))`;
  try {
    const count = numberOf(sqlite, `SELECT count(*) AS n FROM ${quote(table)} WHERE ${broken}`);
    if (count === 0) return null;
    const named = sqlite.prepare<[unknown], []>(`${values} LIMIT ${NAMED_MAX + 1}`);
    const found = named.values().map(([value]) => String(value));
    named.finalize();
    const change =
      isRequired && toColumn !== null
        ? `DELETE FROM ${quote(table)}`
        : `UPDATE ${quote(table)} SET ${own} = ${toColumn === null ? kept : "NULL"}`;
    return { count, values: found, to, sql: `${change} WHERE ${broken}` };
  } catch {
    return null;
  }
}

function numberOf(sqlite: Database, sql: string): number {
  const statement = sqlite.prepare<{ n: number }, []>(sql);
  const row = statement.get();
  statement.finalize();
  return row?.n ?? 0;
}

/** Describes references to nothing, with a migration that ends them. */
export function brokenReference(path: string, { count, values, to, sql }: Broken): string {
  const named = values.slice(0, NAMED_MAX).map((value) => JSON.stringify(value));
  const more = values.length > NAMED_MAX ? ", …" : "";
  return (
    `${path}: ${count} records refer to records of ${to} that do not exist (${named.join(", ")}${more}); ` +
    `a migration has to end that, as with: ${sql}`
  );
}
