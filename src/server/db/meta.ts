import type { Database } from "bun:sqlite";
import { isMissingTable } from "./missing-table.ts";

/** Reads a value of a file's metadata; null if the name was never written or the file has no metadata. */
export function readMeta(sqlite: Database, name: string): string | null {
  try {
    const statement = sqlite.prepare<{ value: string }, [string]>(
      `SELECT "value" FROM "_platform_meta" WHERE "name" = ?`,
    );
    const row = statement.get(name);
    statement.finalize();
    return row?.value ?? null;
  } catch (error) {
    if (isMissingTable(error)) return null;
    throw error;
  }
}

export function writeMeta(sqlite: Database, name: string, value: string): void {
  sqlite.run(
    `INSERT INTO "_platform_meta" ("name", "value") VALUES (?, ?)
     ON CONFLICT ("name") DO UPDATE SET "value" = excluded."value"`,
    [name, value],
  );
}
