import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { brokenReference, countBrokenReferences } from "./broken-references.ts";
import { type DeclaredTable, SchemaMismatch } from "./types.ts";

// The index of a column with several references: a table with a row for each id in it, which triggers keep.

/** Begins the names of these tables and of their triggers. */
const PREFIX = "_platform_links:";

/** Returns the name of the table that indexes the ids in a column. */
export const linksName = (table: string, column: string): string => `${PREFIX}${table}:${column}`;

interface Links {
  table: string;
  column: string;
  /** null: a table of another file. */
  to: string | null;
}

const linksOf = (tables: readonly DeclaredTable[]): Links[] =>
  tables.flatMap(({ name, columns }) =>
    columns.flatMap((column) =>
      column.linksTo === undefined ? [] : [{ table: name, column: column.name, to: column.linksTo }],
    ),
  );

/** Drops the triggers of all links, which would prevent changes of their tables. */
export function dropLinkTriggers(sqlite: Database): void {
  for (const name of ownNames(sqlite, "trigger")) sqlite.run(`DROP TRIGGER ${quote(name)}`);
}

/**
 * Creates what is missing, and drops what is no longer declared. Links are filled from their columns when they are new, or may be
 * stale. Errors: `SchemaMismatch` for ids of records that do not exist.
 */
export function applyLinks(
  sqlite: Database,
  tables: readonly DeclaredTable[],
  { isStale, pathOf }: { isStale: boolean; pathOf: (table: string) => string },
): void {
  const wanted = linksOf(tables);
  const names = new Set(wanted.map(({ table, column }) => linksName(table, column)));
  const present = new Set(ownNames(sqlite, "table"));
  for (const name of present) if (!names.has(name)) sqlite.run(`DROP TABLE ${quote(name)}`);
  const problems: string[] = [];
  for (const links of wanted) {
    const name = linksName(links.table, links.column);
    const isNew = !present.has(name);
    if (isNew) {
      const columns = `"target" TEXT NOT NULL, "id" TEXT NOT NULL, PRIMARY KEY ("target", "id")`;
      sqlite.run(`CREATE TABLE ${quote(name)} (${columns}) STRICT, WITHOUT ROWID`);
    }
    for (const sql of triggersSql(links)) sqlite.run(sql);
    if (!isNew && !isStale) continue;
    fill(sqlite, links);
    const { to } = links;
    const broken =
      to === null ? null : countBrokenReferences(sqlite, { ...links, to, toColumn: null, isRequired: false });
    if (broken !== null) problems.push(brokenReference(`${pathOf(links.table)}.${links.column}`, broken));
  }
  if (problems.length > 0) throw new SchemaMismatch(problems);
}

/** Fills links from their column. */
function fill(sqlite: Database, { table, column }: Links): void {
  const links = quote(linksName(table, column));
  sqlite.run(`DELETE FROM ${links}`);
  sqlite.run(
    `INSERT INTO ${links} SELECT e.value, t."id" FROM ${quote(table)} AS t, json_each(t.${quote(column)}) AS e
     WHERE t.${quote(column)} <> '[]'`,
  );
}

/** Returns the triggers that keep the links of a column. An update writes the ids that differ alone. */
function triggersSql({ table, column }: Links): string[] {
  const name = linksName(table, column);
  const [links, on, own] = [quote(name), quote(table), quote(column)];
  const ids = (row: "old" | "new") => `SELECT value FROM json_each(${row}.${own})`;
  const remove = (which: string) => `DELETE FROM ${links} WHERE "target" IN (${which}) AND "id" = old."id"`;
  return [
    `CREATE TRIGGER ${quote(`${name}:insert`)} AFTER INSERT ON ${on} WHEN new.${own} <> '[]'
     BEGIN INSERT INTO ${links} SELECT value, new."id" FROM json_each(new.${own}); END`,
    `CREATE TRIGGER ${quote(`${name}:delete`)} AFTER DELETE ON ${on} WHEN old.${own} <> '[]'
     BEGIN ${remove(ids("old"))}; END`,
    `CREATE TRIGGER ${quote(`${name}:update`)} AFTER UPDATE OF ${own} ON ${on} WHEN old.${own} <> new.${own}
     BEGIN ${remove(`${ids("old")} EXCEPT ${ids("new")}`)};
     INSERT INTO ${links} SELECT value, new."id" FROM (${ids("new")} EXCEPT ${ids("old")}); END`,
  ];
}

function ownNames(sqlite: Database, type: "table" | "trigger"): string[] {
  const statement = sqlite.prepare<{ name: string }, [string, string, string]>(
    "SELECT name FROM sqlite_master WHERE type = ? AND substr(name, 1, length(?)) = ?",
  );
  const names = statement.all(type, PREFIX, PREFIX).map(({ name }) => name);
  statement.finalize();
  return names;
}
