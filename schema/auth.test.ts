import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { getTableConfig } from "drizzle-orm/sqlite-core";
import * as tables from "./auth.ts";
import { systemMigrations } from "./migrations/index.ts";

test("the tables as drizzle sees them are those that the migrations make", () => {
  const sqlite = new Database(":memory:");
  for (const { sql } of systemMigrations) sqlite.run(sql);
  for (const table of Object.values(tables)) {
    const { name, columns, indexes } = getTableConfig(table);
    const made = sqlite
      .query<{ name: string; type: string; notnull: number; pk: number }, []>(`PRAGMA table_info("${name}")`)
      .all();
    const declared = columns.map((column) => ({
      name: column.name,
      type: column.getSQLType().toUpperCase(),
      // An INTEGER PRIMARY KEY is never NULL, and says so nowhere.
      required: column.notNull || column.primary,
    }));
    expect(made.map(({ name, type, notnull, pk }) => ({ name, type, required: notnull === 1 || pk > 0 }))).toEqual(
      declared,
    );
    const names = sqlite
      .query<{ name: string }, []>(`SELECT name FROM pragma_index_list('${name}') WHERE origin = 'c' ORDER BY name`)
      .all();
    expect(names.map((index) => index.name)).toEqual(indexes.map((index) => index.config.name).sort());
  }
  sqlite.close();
});
