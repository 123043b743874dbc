import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { systemMigrations } from "../schema/migrations/index.ts";

// The drizzle tables of schema/ say what the server stores for itself; the migrations make it. They must say the same.

const directory = resolve(import.meta.dir, "../schema");
const sqlite = new Database(":memory:");
for (const { sql } of systemMigrations) sqlite.run(sql);

const tables: SQLiteTable[] = [];
for (const file of new Bun.Glob("*.ts").scanSync(directory)) {
  if (file.endsWith(".d.ts")) continue;
  const module: Record<string, unknown> = await import(resolve(directory, file));
  for (const value of Object.values(module)) if (value instanceof SQLiteTable) tables.push(value);
}

interface ColumnInfo {
  name: string;
  type: string;
  notnull: number;
  pk: number;
}

describe("system.db is what schema/ declares", () => {
  test("every table of the migrations is declared, and the other way round", () => {
    const made = sqlite
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
      )
      .all();
    const declared = tables.map((table) => getTableConfig(table).name).sort();
    expect(made.map(({ name }) => name)).toEqual(declared);
  });

  for (const table of tables) {
    const { name, columns } = getTableConfig(table);
    test(`the columns of ${name}`, () => {
      const made = sqlite.query<ColumnInfo, []>(`PRAGMA table_info("${name}")`).all();
      const isNotNull = (column: ColumnInfo) => column.notnull === 1 || column.pk > 0;
      expect(made.map((column) => [column.name, column.type.toLowerCase(), isNotNull(column)])).toEqual(
        columns.map((column) => [column.name, column.getSQLType(), column.notNull || column.primary]),
      );
    });
  }
});
