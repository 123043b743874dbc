import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { systemMigrations } from "../../schema/migrations/index.ts";
import type { OpenedFile, StorageEngine } from "./types.ts";

const SYSTEM_FILE = "system.db";
const CREATE_MIGRATIONS = `CREATE TABLE IF NOT EXISTS "_migrations" ("name" TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID`;

/** A step of the server's own tables: `name` is recorded in the file, and the step never runs there again. */
export interface SystemMigration {
  name: string;
  sql: string;
}

/** Opens `system.db`, where the server keeps what is its own, with the tables of `schema/`. The directory must exist. */
export function openSystemFile(engine: StorageEngine, dataDirectory: string): OpenedFile {
  return engine.open(join(dataDirectory, SYSTEM_FILE), {
    migrate: (sqlite) => migrateSystem(sqlite, systemMigrations),
  });
}

/**
 * Runs what has not run yet, in order, each step in a transaction with the record of it. Errors: a step fails, or the
 * file knows one that this server does not (it has been used by a later version).
 */
export function migrateSystem(sqlite: Database, migrations: readonly SystemMigration[]): void {
  sqlite.run(CREATE_MIGRATIONS);
  const rows = sqlite.query<{ name: string }, []>(`SELECT "name" FROM "_migrations" ORDER BY "name"`).all();
  const done = new Set(rows.map(({ name }) => name));
  const unknown = [...done].filter((name) => !migrations.some((migration) => migration.name === name));
  if (unknown.length > 0) {
    throw new Error(`${sqlite.filename} was written by a later version of the server (${unknown.join(", ")})`);
  }
  for (const migration of migrations) {
    if (!done.has(migration.name)) sqlite.transaction(() => apply(sqlite, migration)).immediate();
  }
}

function apply(sqlite: Database, { name, sql }: SystemMigration): void {
  try {
    sqlite.run(sql);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`Migration ${name} of ${sqlite.filename} failed: ${message}`, { cause: error });
  }
  sqlite.run(`INSERT INTO "_migrations" ("name") VALUES (?)`, [name]);
}
