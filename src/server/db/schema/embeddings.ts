import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote, quoteText } from "../identifiers.ts";
import type { DeclaredTable } from "./types.ts";

// Vectors of records, and the records that wait for one, in tables that triggers keep in step with the records.

const PREFIX = "_platform_embedded:";
const WAITING_PREFIX = "_platform_unembedded:";

/** Name of the table with a row for each table whose records get vectors. */
export const EMBEDDINGS_TABLE = "_platform_embeddings";

/** Returns the name of the table that has the vectors of a table's records, by their row ids. */
export const embeddedName = (table: string): string => `${PREFIX}${table}`;

/** Returns the name of the table that has the row ids of the records that wait for a vector. */
export const unembeddedName = (table: string): string => `${WAITING_PREFIX}${table}`;

/**
 * The length of a table's vectors is that of the first one. All records above the row id in `walk` have to be looked at; null: none has.
 * `vectors` counts the vectors.
 */
const CREATE_STATES = `CREATE TABLE IF NOT EXISTS "${EMBEDDINGS_TABLE}" ("table" TEXT PRIMARY KEY NOT NULL, "key" TEXT NOT NULL,
  "dimensions" INTEGER, "walk" INTEGER, "vectors" INTEGER NOT NULL DEFAULT 0) STRICT`;

/** A number that no other change has, of as many bits as JavaScript's numbers keep. */
export const TOKEN = "(random() >> 12)";

/** Whether the server made this trigger for the vectors of the table. */
export const isEmbeddingTrigger = (table: string, name: string): boolean =>
  name.startsWith(`${embeddedName(table)}:`) && triggerNames(table).includes(name);

const triggerNames = (table: string): string[] =>
  ["insert", "update", "delete"].map((event) => `${embeddedName(table)}:${event}`);

/**
 * Makes what a table lacks for its vectors. Another declaration than that of the stored vectors drops these. `isStale`: triggers may
 * have missed changes, so that every record is looked at; those whose text is the same keep their vectors.
 */
export function applyEmbeddings(
  sqlite: Database,
  { name, embed }: DeclaredTable,
  { isStale }: { isStale: boolean },
): void {
  dropEmbeddingTriggers(sqlite, name);
  if (embed === undefined) {
    dropEmbeddings(sqlite, name);
    return;
  }
  sqlite.run(CREATE_STATES);
  const state = one<{ key: string }>(sqlite, `SELECT "key" FROM "${EMBEDDINGS_TABLE}" WHERE "table" = ?`, name);
  if (state?.key !== embed.key) {
    dropEmbeddings(sqlite, name);
    const vectors = `"row" INTEGER PRIMARY KEY, "digest" BLOB NOT NULL, "vector" BLOB NOT NULL`;
    sqlite.run(`CREATE TABLE ${quote(embeddedName(name))} (${vectors}) STRICT`);
    const waiting = `"row" INTEGER PRIMARY KEY, "token" INTEGER NOT NULL, "tries" INTEGER NOT NULL DEFAULT 0`;
    sqlite.run(`CREATE TABLE ${quote(unembeddedName(name))} (${waiting}) STRICT`);
    sqlite.run(
      `CREATE INDEX ${quote(`${unembeddedName(name)}:tries`)} ON ${quote(unembeddedName(name))} ("tries", "row")`,
    );
    const walk = `CASE WHEN EXISTS (SELECT 1 FROM ${quote(name)}) THEN 0 END`;
    sqlite.run(`INSERT INTO "${EMBEDDINGS_TABLE}" ("table", "key", "walk") VALUES (?, ?, ${walk})`, [name, embed.key]);
  } else if (isStale) {
    // Vectors of records that a migration has deleted, or moved to other row ids.
    const gone = `"row" NOT IN (SELECT rowid FROM ${quote(name)})`;
    for (const from of [embeddedName(name), unembeddedName(name)])
      sqlite.run(`DELETE FROM ${quote(from)} WHERE ${gone}`);
    const counted = `(SELECT count(*) FROM ${quote(embeddedName(name))})`;
    sqlite.run(`UPDATE "${EMBEDDINGS_TABLE}" SET "walk" = 0, "vectors" = ${counted} WHERE "table" = ?`, [name]);
  }
  for (const sql of triggersSql(name, embed.fields)) sqlite.run(sql);
}

/** Drops the vectors of a table that is no longer declared, or declared without them. */
export function dropEmbeddings(sqlite: Database, table: string): void {
  dropEmbeddingTriggers(sqlite, table);
  for (const name of [embeddedName(table), unembeddedName(table)]) sqlite.run(`DROP TABLE IF EXISTS ${quote(name)}`);
  const exists = one(sqlite, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", EMBEDDINGS_TABLE);
  if (exists !== null) sqlite.run(`DELETE FROM "${EMBEDDINGS_TABLE}" WHERE "table" = ?`, [table]);
}

export function dropEmbeddingTriggers(sqlite: Database, table: string): void {
  for (const name of triggerNames(table)) sqlite.run(`DROP TRIGGER IF EXISTS ${quote(name)}`);
}

/**
 * Returns triggers that take a record's vector away when its text changes, and note that it waits for one, also where foreign keys
 * delete records. The token says whether a record has changed again since its text was read.
 */
function triggersSql(table: string, fields: readonly string[]): string[] {
  const [on, vectors, waiting] = [table, embeddedName(table), unembeddedName(table)].map(quote);
  const [onInsert = "", onUpdate = "", onDelete = ""] = triggerNames(table).map(quote);
  const columns = fields.map(quote).join(", ");
  const isChanged = fields.map((field) => `old.${quote(field)} IS NOT new.${quote(field)}`).join(" OR ");
  const had = `(SELECT count(*) FROM ${vectors} WHERE "row" = old.rowid)`;
  // A conflict clause would be overruled by that of the statement that fires the trigger.
  const remove = `UPDATE "${EMBEDDINGS_TABLE}" SET "vectors" = "vectors" - ${had} WHERE "table" = ${quoteText(table)};
     DELETE FROM ${vectors} WHERE "row" = old.rowid; DELETE FROM ${waiting} WHERE "row" = old.rowid;`;
  const add = `INSERT INTO ${waiting} ("row", "token") VALUES (new.rowid, ${TOKEN});`;
  return [
    `CREATE TRIGGER ${onInsert} AFTER INSERT ON ${on} BEGIN ${add} END`,
    `CREATE TRIGGER ${onUpdate} AFTER UPDATE OF ${columns} ON ${on} WHEN ${isChanged} BEGIN ${remove} ${add} END`,
    `CREATE TRIGGER ${onDelete} AFTER DELETE ON ${on} BEGIN ${remove} END`,
  ];
}

function one<Row>(sqlite: Database, sql: string, value: string): Row | null {
  using statement = sqlite.prepare<Row, [string]>(sql);
  return statement.get(value);
}
