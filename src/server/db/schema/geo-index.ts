import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";
import type { DeclaredTable } from "./types.ts";

// Each `geo` field has an R-tree with the point of each record by its row id, kept by triggers.

const PREFIX = "_platform_geo";

/** Returns the beginning of the names of a table's R-trees and their triggers. No name of a table or field has a colon. */
const prefixOf = (table: string): string => `${PREFIX}:${table}:`;

export const geoIndexName = (table: string, field: string): string => `${prefixOf(table)}${field}`;

/** Whether the server made this trigger for an R-tree of the table. */
export const isGeoTrigger = (table: string, name: string): boolean => name.startsWith(prefixOf(table));

const geoFields = ({ columnKinds }: DeclaredTable): string[] =>
  Object.keys(columnKinds).filter((name) => columnKinds[name] === "geo");

/** Makes the missing R-trees of a table and their triggers, and drops those of former fields. `isStale`: they may not match. */
export function applyGeo(sqlite: Database, table: DeclaredTable, { isStale }: { isStale: boolean }): void {
  const fields = geoFields(table);
  const wanted = new Set(fields.map((field) => geoIndexName(table.name, field)));
  const present = new Set(namesOf(sqlite, table.name, "table"));
  for (const name of present) if (!wanted.has(name)) sqlite.run(`DROP TABLE ${quote(name)}`);
  dropGeoTriggers(sqlite, table.name);
  for (const field of fields) {
    const name = geoIndexName(table.name, field);
    const isNew = !present.has(name);
    if (isNew) sqlite.run(`CREATE VIRTUAL TABLE ${quote(name)} USING rtree("id", "south", "north", "west", "east")`);
    if (isNew || isStale) for (const sql of refillSql(table.name, field)) sqlite.run(sql);
    for (const sql of triggersSql(table.name, field)) sqlite.run(sql);
  }
}

/** Drops the R-trees of a table that is no longer declared. */
export function dropGeo(sqlite: Database, table: string): void {
  dropGeoTriggers(sqlite, table);
  for (const name of namesOf(sqlite, table, "table")) sqlite.run(`DROP TABLE ${quote(name)}`);
}

export function dropGeoTriggers(sqlite: Database, table: string): void {
  for (const name of namesOf(sqlite, table, "trigger")) sqlite.run(`DROP TRIGGER ${quote(name)}`);
}

/** Returns the names of the R-trees of a table, without the tables in which they store themselves, or of their triggers. */
function namesOf(sqlite: Database, table: string, type: "table" | "trigger"): string[] {
  const statement = sqlite.prepare<{ name: string }, [string, string, string]>(
    "SELECT name FROM sqlite_master WHERE type = ?1 AND substr(name, 1, length(?2)) = ?2 AND sql LIKE ?3",
  );
  const found = statement.all(type, prefixOf(table), type === "table" ? "CREATE VIRTUAL TABLE%" : "CREATE TRIGGER%");
  statement.finalize();
  return found.map(({ name }) => name);
}

const latOf = (column: string): string => `json_extract(${column}, '$.lat')`;
const lngOf = (column: string): string => `json_extract(${column}, '$.lng')`;

const insertInto = (index: string): string => `INSERT INTO ${index} ("id", "south", "north", "west", "east")`;

function refillSql(table: string, field: string): string[] {
  const [index, column] = [quote(geoIndexName(table, field)), quote(field)];
  const [lat, lng] = [latOf(column), lngOf(column)];
  return [
    `DELETE FROM ${index}`,
    `${insertInto(index)} SELECT rowid, ${lat}, ${lat}, ${lng}, ${lng} FROM ${quote(table)} WHERE ${column} IS NOT NULL`,
  ];
}

/** Returns triggers that update an R-tree with its table, also where foreign keys delete records. */
function triggersSql(table: string, field: string): string[] {
  const name = geoIndexName(table, field);
  const [on, index, column] = [quote(table), quote(name), quote(field)];
  const [before, after] = [`old.${column}`, `new.${column}`];
  const [lat, lng] = [latOf(after), lngOf(after)];
  const remove = `DELETE FROM ${index} WHERE "id" = old.rowid`;
  const add = `${insertInto(index)} SELECT new.rowid, ${lat}, ${lat}, ${lng}, ${lng} WHERE ${after} IS NOT NULL`;
  const trigger = (event: string): string => `CREATE TRIGGER ${quote(`${name}:${event}`)}`;
  return [
    `${trigger("insert")} AFTER INSERT ON ${on} WHEN ${after} IS NOT NULL BEGIN ${add}; END`,
    `${trigger("delete")} AFTER DELETE ON ${on} WHEN ${before} IS NOT NULL BEGIN ${remove}; END`,
    `${trigger("update")} AFTER UPDATE OF ${column} ON ${on} WHEN ${before} IS NOT ${after} BEGIN ${remove}; ${add}; END`,
  ];
}
