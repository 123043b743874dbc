import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { TOMBSTONES_MAX } from "../limits.ts";
import { literal } from "./sql.ts";
import type { DeclaredTable } from "./types.ts";

// The log of deleted records to which other files refer, kept by triggers: no way to delete a record leaves it out. The mark, a random
// text, tells the logs of two histories of a file apart.
//
// Beside it are the moves: records whose references belong to another one, as after a merge of accounts. A move is noted before its
// record is deleted, with the number 0, and gets the number of the tombstone. What is
// deleted under an id that a move names gets a move to nothing: so the moves tell records apart that had one id after each other. Moves stay longer than tombstones, for files that are compared.

/** Name of the log in the file: `seq`, `mark`, `table`, and `id`, null where records of the table may have gone unlogged. */
export const TOMBSTONES_TABLE = "_platform_tombstones";

/** Name of the moves in the file: `table`, `id`, `seq` (0: not deleted yet), and `into`, null where nothing takes over. */
export const MOVES_TABLE = "_platform_moves";

const PREFIX = `${TOMBSTONES_TABLE}:`;

const insertSql = (table: string, id: string): string =>
  `INSERT INTO ${quote(TOMBSTONES_TABLE)} ("mark", "table", "id") VALUES (lower(hex(randomblob(8))), ${literal(table)}, ${id})`;

/** Drops the triggers, which would prevent changes of their tables. Returns the tables that had one. */
export function dropTombstoneTriggers(sqlite: Database): ReadonlySet<string> {
  const statement = sqlite.prepare<{ name: string; table: string }, [string]>(
    `SELECT name, tbl_name AS "table" FROM sqlite_master WHERE type = 'trigger' AND substr(name, 1, length(?1)) = ?1`,
  );
  const triggers = statement.all(PREFIX);
  statement.finalize();
  for (const { name } of triggers) sqlite.run(`DROP TRIGGER ${quote(name)}`);
  return new Set(triggers.map(({ table }) => table));
}

/**
 * Creates the log and its triggers where tables are logged. `known`: those that had a trigger. Of the others records may have gone
 * without tombstones, as of all where migrations ran (`isStale`).
 */
export function applyTombstones(
  sqlite: Database,
  tables: readonly DeclaredTable[],
  { known, isStale }: { known: ReadonlySet<string>; isStale: boolean },
): void {
  const logged = tables.filter(({ isLogged }) => isLogged === true);
  if (logged.length === 0) return;
  const log = quote(TOMBSTONES_TABLE);
  sqlite.run(
    `CREATE TABLE IF NOT EXISTS ${log} ("seq" INTEGER PRIMARY KEY, "mark" TEXT NOT NULL, "table" TEXT NOT NULL, "id" TEXT) STRICT`,
  );
  const moves = quote(MOVES_TABLE);
  sqlite.run(
    `CREATE TABLE IF NOT EXISTS ${moves} ("seq" INTEGER NOT NULL, "table" TEXT NOT NULL, "id" TEXT NOT NULL, "into" TEXT, PRIMARY KEY ("table", "id", "seq")) STRICT, WITHOUT ROWID`,
  );
  for (const columns of [`"seq"`, `"table", "into"`]) {
    sqlite.run(`CREATE INDEX IF NOT EXISTS ${quote(`${MOVES_TABLE}:${columns}`)} ON ${moves} (${columns})`);
  }
  for (const { name } of logged) {
    if (isStale || !known.has(name)) sqlite.run(insertSql(name, "NULL"));
    sqlite.run(
      `CREATE TRIGGER ${quote(`${PREFIX}${name}`)} AFTER DELETE ON ${quote(name)}
       BEGIN
         ${insertSql(name, 'old."id"')};
         DELETE FROM ${log} WHERE "seq" <= last_insert_rowid() - ${TOMBSTONES_MAX};
         INSERT INTO ${moves} ("seq", "table", "id", "into")
           SELECT last_insert_rowid(), ${literal(name)}, old."id",
             (SELECT "into" FROM ${moves} WHERE "table" = ${literal(name)} AND "id" = old."id" AND "seq" = 0)
           WHERE EXISTS (SELECT 1 FROM ${moves} WHERE "table" = ${literal(name)} AND "id" = old."id")
             OR EXISTS (SELECT 1 FROM ${moves} WHERE "table" = ${literal(name)} AND "into" = old."id");
         DELETE FROM ${moves} WHERE "table" = ${literal(name)} AND "id" = old."id" AND "seq" = 0;
       END`,
    );
  }
}
