import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import { type AreaValues, areaValues, candidatesOf, distanceSql, pointSql } from "../filters/areas.ts";
import { bound, type SqlCondition } from "../filters/filter-sql.ts";
import {
  NEAR_BYTES_MAX,
  NEAR_CANDIDATES_MAX,
  NEAR_FIRST_METERS,
  NEAR_METERS_MAX,
  NEAR_METERS_MIN,
  NEAR_STEPS_MAX,
  QUICK_STEPS_MAX,
} from "../limits.ts";
import type { Column, TableModel } from "../model/model.ts";
import { limitSql, ROW, recordsAt, sizeOf } from "./index-walk.ts";
import type { Matches } from "./matches.ts";

const DISTANCE = '"_platform_distance"';

/** A page to read, as in `ListQuery`; `area` are the values or slots of `nearValues`. */
interface NearPage {
  columns: readonly Column[];
  matches: Matches;
  near: { column: Column; area: AreaValues };
  limit: number;
  offset: number;
}

const [LAT, LNG] = ['"_platform_lat"', '"_platform_lng"'];
/** Keeps SQLite from evaluating a subquery each time that the outer query uses it. */
const ONCE = "LIMIT -1 OFFSET 0";

/** Returns a SELECT of row id, id and distance of the records of `from`: each coordinate is read once, each distance calculated once. */
function distances({ sql }: TableModel, { column, area }: NearPage["near"], from: SqlCondition): SqlCondition {
  const { lat, lng } = pointSql(`${sql}.${column.sql}`);
  const points = `SELECT ${sql}.rowid AS ${ROW}, ${sql}."id" AS "id", ${lat} AS ${LAT}, ${lng} AS ${LNG} FROM ${from.sql} ${ONCE}`;
  const distance = distanceSql({ lat: LAT, lng: LNG }, area.circle ?? []);
  return {
    sql: `SELECT ${ROW}, "id", ${distance.sql} AS ${DISTANCE} FROM (${points}) ${ONCE}`,
    params: [...distance.params, ...from.params],
  };
}

const selected = (model: TableModel, { columns }: NearPage): string =>
  columns.map(({ sql }) => `${model.sql}.${sql}`).join(", ");

const skipped = (offset: number): SqlValue[] => (offset === 0 ? [] : [offset]);

/** Returns the row ids of the page among the distances of all matches. `gate`: a FROM without rows where none are to be calculated. */
function placesOfAll(model: TableModel, { matches, near, limit, offset }: NearPage, gate: string): SqlCondition {
  const where = matches.where === null ? "" : ` WHERE ${matches.where.sql}`;
  const from = { sql: `${gate}${model.sql}${where}`, params: matches.where?.params ?? [] };
  const found = distances(model, near, from);
  return {
    sql: `SELECT ${ROW} FROM (${found.sql}) ORDER BY ${DISTANCE} NULLS LAST, "id" ${limitSql(limit, offset)}`,
    params: [...found.params, ...skipped(offset)],
  };
}

/** Returns the page that calculates the distance of every match. */
export function nearestOfAll(model: TableModel, page: NearPage): SqlCondition {
  const { sql, params } = placesOfAll(model, page, "");
  return { sql: recordsAt(model, selected(model, page), sql), params };
}

/** Statements that find the nearest records in a growing circle. */
export interface NearWalk {
  /** Counts the candidates of the circle, up to a limit. */
  count: SqlCondition;
  /** Sums the bytes of the candidates. */
  bytes: SqlCondition;
  /** Reads the page among the candidates; it is the page of the list where it is full. */
  page: SqlCondition;
  /** Reads the page among the candidates, and among all matches where it is not full: for a query process. */
  pageOfAll: SqlCondition;
  limit: number;
  offset: number;
}

const FIRST = '"_platform_first"';

/** Returns a walk; null where a page needs more records than a circle is counted for. */
export function nearWalk(model: TableModel, page: NearPage): NearWalk | null {
  const { matches, near, limit, offset } = page;
  if (offset + limit > QUICK_STEPS_MAX / 2) return null;
  const found = candidatesOf(near.column, near.area);
  const joined = `(${found.sql}) AS "_platform_candidates" CROSS JOIN ${model.sql} ON ${model.sql}.rowid = "_platform_candidates"."id"`;
  const where = matches.tested === null ? "" : ` WHERE ${matches.tested.sql}`;
  const params = [...found.params, ...(matches.tested?.params ?? [])];
  const tested = distances(model, near, { sql: `${joined}${where}`, params });
  const places = `SELECT ${ROW} FROM (${tested.sql}) WHERE ${DISTANCE} <= ? ORDER BY ${DISTANCE}, "id" ${limitSql(limit, offset)}`;
  const placesParams = [...tested.params, near.area.circle?.at(-1) ?? null, ...skipped(offset)];
  const isFull = `(SELECT count(*) FROM ${FIRST}) = ${limit}`;
  const all = placesOfAll(model, page, `(SELECT 1 WHERE NOT ${isFull}) AS "_platform_gate" CROSS JOIN `);
  const either = `SELECT ${ROW} FROM ${FIRST} WHERE ${isFull} UNION ALL SELECT ${ROW} FROM (${all.sql})`;
  const columns = selected(model, page);
  return {
    count: { sql: `SELECT count(*) FROM (${found.sql} LIMIT ${QUICK_STEPS_MAX + 1})`, params: found.params },
    bytes: { sql: `SELECT sum(${sizeOf(model)}) FROM ${joined}`, params: found.params },
    page: { sql: recordsAt(model, columns, places), params: placesParams },
    pageOfAll: {
      sql: `WITH ${FIRST} AS MATERIALIZED (${places}) ${recordsAt(model, columns, either)}`,
      params: [...placesParams, ...all.params],
    },
    limit,
    offset,
  };
}

/** The statements and bounds that a walk reads with. */
interface Reading {
  file: Pick<DatabaseFile, "query">;
  values: readonly SqlValue[];
  read(statement: SqlCondition): TableRecord[] | null;
}

/** The page that a walk has read; where it has none, the page to read in a query process, or null for that of all matches. */
type Walked = { records: TableRecord[] } | { records: null; page: SqlCondition | null };

/**
 * Reads the nearest records in a circle that grows until it has enough of them for certain, and shrinks where it has too many
 * candidates. Where too many have to be examined here, a query process looks in a circle of twice that radius first, in which
 * conditions may leave some out.
 */
export function walkNear(walk: NearWalk, { file, values, read }: Reading): Walked {
  const { count, bytes, page, pageOfAll, limit, offset } = walk;
  const wanted = offset + limit;
  const number = ({ sql, params }: SqlCondition): number => Number(file.query(sql).values(...params)[0]?.[0] ?? 0);
  const others = values.slice(0, -AREA_VALUES);
  const [lat, lng] = values.slice(-CIRCLE_VALUES).map(Number);
  const point = { lat: lat ?? 0, lng: lng ?? 0 };
  const inCircle = (meters: number) => [...others, ...areaValues({ ...point, meters }).all];
  let [examined, low, high] = [0, 0, Number.POSITIVE_INFINITY];
  const elsewhere = (meters: number): Walked => ({
    records: null,
    page: bound(pageOfAll, inCircle(Math.min(2 * meters, high))),
  });
  const nowhere: Walked = { records: null, page: null };
  let meters = NEAR_FIRST_METERS;
  let hasShrunk = false;
  for (let step = 0; step < NEAR_STEPS_MAX; step++) {
    const present = inCircle(meters);
    const found = number(bound(count, present));
    /** Records within the circle that belong to the list. */
    let matching = found;
    if (!hasShrunk && found > Math.max(100, 5 * wanted) && found <= QUICK_STEPS_MAX) {
      // Fewer will probably do, and cost less.
      hasShrunk = true;
      meters *= Math.sqrt((2.5 * wanted) / found);
      continue;
    }
    if (found > QUICK_STEPS_MAX) high = meters;
    else {
      low = meters;
      if (found >= wanted) {
        examined += found;
        if (examined > NEAR_CANDIDATES_MAX || number(bound(bytes, present)) > NEAR_BYTES_MAX) return elsewhere(meters);
        const records = read(bound(page, present));
        if (records === null) return elsewhere(meters);
        if (records.length === limit) return { records };
        // Some of those to be skipped may be missing as well.
        matching = records.length + (records.length === 0 ? 0 : offset);
      }
      if (meters === NEAR_METERS_MAX) return nowhere;
    }
    if (high < NEAR_METERS_MIN || high / low < 1.01) return elsewhere(high);
    // Somewhat more than are wanted, if points lie evenly.
    const grown = low * Math.min(8, Math.max(1.4, Math.sqrt((1.5 * wanted) / Math.max(1, matching))));
    meters =
      high === Number.POSITIVE_INFINITY
        ? Math.min(grown, NEAR_METERS_MAX)
        : Math.sqrt(Math.max(low, high / 1000) * high);
  }
  return high === Number.POSITIVE_INFINITY ? nowhere : elsewhere(high);
}

/** Numbers of `AreaValues.all`, and of its circle. */
const CIRCLE_VALUES = 4;
const AREA_VALUES = 6 + CIRCLE_VALUES;
