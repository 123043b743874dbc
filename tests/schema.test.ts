import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { basename, resolve } from "node:path";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { getTableName } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/sqlite-core";
import { systemTables } from "../schema/index.ts";
import * as layouts from "../schema/migrations/index.ts";
import { layOut } from "../src/server/db/index.ts";

// The drizzle tables of schema/ are what queries are written with; the steps of schema/migrations/system make the tables.
// Both must say the same: what `npm run migrations` compares with (snapshot.json), and what SQLite has after the steps.

const directory = resolve(import.meta.dir, "../schema");
const tables = Object.values(systemTables);

/** Executables from before the steps were counted read it. */
const UNDECLARED = "_migrations";

function laidOut(sql: readonly string[] | null): Database {
  const sqlite = new Database(":memory:");
  if (sql === null) layOut(layouts.systemLayout)(sqlite);
  else for (const statement of sql) sqlite.run(statement);
  return sqlite;
}

type Facts = Record<string, unknown>;

/** Returns SQLite's description of a table, in an order that does not depend on the names of indexes that it makes itself. */
function factsOf(sqlite: Database, table: string): Facts {
  const all = (sql: string) => sqlite.query<Facts, []>(sql).all();
  const columns = all(
    `SELECT name, upper(type) AS type, "notnull" OR pk AS isRequired, dflt_value, pk FROM pragma_table_info('${table}')`,
  );
  const indexes = all(`SELECT name, "unique" FROM pragma_index_list('${table}') WHERE origin <> 'pk'`).map((index) => {
    const parts = all(`SELECT name, coll FROM pragma_index_xinfo('${String(index["name"])}') WHERE key`);
    return JSON.stringify([index["unique"], parts]);
  });
  const references = all(`SELECT "table", "from", "to", on_delete FROM pragma_foreign_key_list('${table}')`);
  return {
    columns: columns.map(normalDefault),
    indexes: indexes.sort(),
    references: references.map((one) => JSON.stringify(one)).sort(),
  };
}

/** drizzle-kit writes 0 and 1 of booleans as words. */
function normalDefault(column: Facts): Facts {
  const value = column["dflt_value"];
  return { ...column, dflt_value: value === "false" ? "0" : value === "true" ? "1" : value };
}

test("every table of the steps is declared, and the other way round", () => {
  const sqlite = laidOut(null);
  const made = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name }) => name);
  expect(made.sort()).toEqual([...tables.map((table) => getTableName(table)), UNDECLARED].sort());
});

describe("the steps make what schema/*.ts declares", async () => {
  const declared = laidOut(
    await generateSQLiteMigration(await generateSQLiteDrizzleJson({}), await generateSQLiteDrizzleJson(systemTables)),
  );
  const made = laidOut(null);
  for (const table of tables) {
    const { name } = getTableConfig(table);
    test(name, () => {
      expect(factsOf(made, name)).toEqual(factsOf(declared, name));
      const sql = made.query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE name = ?").get(name)?.sql;
      expect(sql).toMatch(/STRICT/);
    });
  }
});

test("snapshot.json is what schema/*.ts declares: `npm run migrations` has nothing to write", async () => {
  const snapshot = await Bun.file(resolve(directory, "migrations/system/snapshot.json")).json();
  const declared = await generateSQLiteDrizzleJson(systemTables, snapshot.id);
  expect(await generateSQLiteMigration(snapshot, declared)).toEqual([]);
});

test("every step in schema/migrations is part of its layout, in the order of the numbers", async () => {
  for (const layout of Object.values(layouts)) {
    const files = [...new Bun.Glob("*.sql").scanSync(resolve(directory, "migrations", layout.name))].sort();
    expect(files.map((file) => Number.parseInt(basename(file), 10))).toEqual(layout.steps.map((_, index) => index + 1));
    const texts = await Promise.all(
      files.map((file) => Bun.file(resolve(directory, "migrations", layout.name, file)).text()),
    );
    expect([...layout.steps]).toEqual(texts);
  }
});
