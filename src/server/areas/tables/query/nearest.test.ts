import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import type { Filter } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { parseFilter } from "../filters/filter.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { parseSort } from "../filters/sort.ts";
import { type Column, compileTables, type TableModel } from "../model/model.ts";
import { createShapeCache } from "../records/namespaces.ts";
import { walkNear } from "./nearest.ts";
import { createPreparedReads } from "./prepared-reads.ts";

const existing = <T>(value: T | null | undefined): T => {
  if (value === null || value === undefined) throw new Error("nothing is there");
  return value;
};

const schema = { at: { type: "geo" }, n: { type: "integer" } } as const;
const model: TableModel = existing(compileTables("shared", { places: { schema } }).get("places"));
const at: Column = existing(model.byName.get("at"));
const CENTRE = { lat: 48, lng: 16 };
const POINTS = 5_000;

const database = new Database(":memory:");
database.run(`CREATE TABLE ${model.sql} (${model.columns.map(({ sql }) => sql).join()})`);
database.run(`CREATE VIRTUAL TABLE ${at.geoIndex} USING rtree("id", "south", "north", "west", "east")`);
const insert = database.query(`INSERT INTO ${model.sql} ("id", "at", "n") VALUES (?, ?, ?)`);
const place = database.query(`INSERT INTO ${at.geoIndex} VALUES (?, ?, ?, ?, ?)`);
for (let n = 0; n < POINTS; n++) {
  const lat = CENTRE.lat + n / 10_000;
  const { lastInsertRowid } = insert.run(String(n).padStart(5, "0"), JSON.stringify({ ...CENTRE, lat }), n);
  place.run(lastInsertRowid, lat, lat, CENTRE.lng, CENTRE.lng);
}
// A statement that compares all records fails at this one.
insert.run("broken", "no JSON", POINTS);

/** Returns the ids that the main thread has read, or those that a query process reads. */
function nearest(limit: number, filter: Filter): { isHere: boolean; ids: readonly string[] } {
  const { made, values } = createPreparedReads(model, createShapeCache()).list(
    {
      near: { column: at, point: CENTRE },
      limit,
      paging: { mode: "first" },
      sort: parseSort(model, null),
      filter: parseFilter(model, filter, { name: "filter", conditionsMax: 10 }),
      isTotalAsked: true,
      fields: null,
      expand: null,
    },
    { kind: "all", saidBy: "rule", again: null },
  );
  const read = ({ sql, params }: SqlCondition) => database.query<{ id: string }, typeof params>(sql).all(...params);
  const walked = walkNear(existing(made.near), {
    file: database as unknown as Pick<DatabaseFile, "query">, // Both give statements of SQLite for a text.
    values,
    read: (statement) => read(statement).map(({ id }) => ({ id, createdAt: "", updatedAt: "" })),
  });
  const rows = walked.records ?? read(existing(walked.page));
  return { isHere: walked.records !== null, ids: rows.map(({ id }) => String(id)) };
}

const first = (count: number, isIn = (_n: number) => true): string[] =>
  Array.from({ length: POINTS }, (_, n) => n)
    .filter(isIn)
    .slice(0, count)
    .map((n) => String(n).padStart(5, "0"));

test("[TB905] few of the nearest are found on the main thread, more in a process by a circle and not among all records", () => {
  expect(nearest(100, [])).toEqual({ isHere: true, ids: first(100) });
  expect(nearest(1_000, [])).toEqual({ isHere: false, ids: first(1_000) });
  expect(nearest(1_000, [["n", "!=", 7]])).toEqual({ isHere: false, ids: first(1_000, (n) => n !== 7) });
});

test("[TB905] all records are compared where the circle has too few that match", () => {
  expect(() => nearest(900, [["n", ">", 4_000]])).toThrow("malformed JSON");
  database.run(`UPDATE ${model.sql} SET "at" = NULL WHERE "id" = 'broken'`);
  expect(nearest(900, [["n", ">", 4_000]])).toEqual({ isHere: false, ids: first(900, (n) => n > 4_000) });
});
