import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import { type AreaValues, areaValues, candidatesOf, distanceSql, pointSql } from "../filters/areas.ts";
import { bound, type SqlCondition } from "../filters/filter-sql.ts";
import {
  NEAR_CANDIDATES_MAX,
  NEAR_FIRST_METERS,
  NEAR_METERS_MAX,
  NEAR_METERS_MIN,
  NEAR_STEPS_MAX,
  QUICK_STEPS_BYTES,
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
/** Keeps SQLite from calculating what a SELECT gives each time that the outer one uses it. */
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

/** Returns the page that calculates the distance of every match. */
export function nearestOfAll(model: TableModel, page: NearPage): SqlCondition {
  const { matches, near, limit, offset } = page;
  const where = matches.where === null ? "" : ` WHERE ${matches.where.sql}`;
  const found = distances(model, near, { sql: `${model.sql}${where}`, params: matches.where?.params ?? [] });
  const places = `SELECT ${ROW} FROM (${found.sql}) ORDER BY ${DISTANCE} NULLS LAST, "id" ${limitSql(limit, offset)}`;
  return { sql: recordsAt(model, selected(model, page), places), params: [...found.params, ...skipped(offset)] };
}

/** Statements that find the nearest records in a growing circle. */
export interface NearWalk {
  /** Counts the candidates of the circle, up to a limit. */
  count: SqlCondition;
  /** Sums the bytes of the candidates. */
  bytes: SqlCondition;
  /** Reads the page among the candidates; it is the page of the list where it is full. */
  page: SqlCondition;
  limit: number;
  offset: number;
}

/** Returns a walk; null where a page needs more records than the main thread examines. */
export function nearWalk(model: TableModel, page: NearPage): NearWalk | null {
  const { matches, near, limit, offset } = page;
  if (offset + limit > QUICK_STEPS_MAX / 2) return null;
  const found = candidatesOf(near.column, near.area);
  const joined = `(${found.sql}) AS "_platform_candidates" CROSS JOIN ${model.sql} ON ${model.sql}.rowid = "_platform_candidates"."id"`;
  const where = matches.tested === null ? "" : ` WHERE ${matches.tested.sql}`;
  const params = [...found.params, ...(matches.tested?.params ?? [])];
  const tested = distances(model, near, { sql: `${joined}${where}`, params });
  const places = `SELECT ${ROW} FROM (${tested.sql}) WHERE ${DISTANCE} <= ? ORDER BY ${DISTANCE}, "id" ${limitSql(limit, offset)}`;
  const radius = near.area.circle?.at(-1) ?? null;
  return {
    count: { sql: `SELECT count(*) FROM (${found.sql} LIMIT ${QUICK_STEPS_MAX + 1})`, params: found.params },
    bytes: { sql: `SELECT sum(${sizeOf(model)}) FROM ${joined}`, params: found.params },
    page: {
      sql: recordsAt(model, selected(model, page), places),
      params: [...tested.params, radius, ...skipped(offset)],
    },
    limit,
    offset,
  };
}

/** The statements and bounds that a walk reads with. */
interface Reading {
  file: DatabaseFile;
  values: readonly SqlValue[];
  read(statement: SqlCondition): TableRecord[] | null;
}

/**
 * Reads the nearest records in a circle that grows until it has enough of them for certain, and shrinks where it has too many
 * candidates. null: too many have to be examined, or records without a point belong to the page.
 */
export function walkNear({ count, bytes, page, limit, offset }: NearWalk, { file, values, read }: Reading) {
  const wanted = offset + limit;
  const number = ({ sql, params }: SqlCondition): number => Number(file.query(sql).values(...params)[0]?.[0] ?? 0);
  const others = values.slice(0, -AREA_VALUES);
  const [lat, lng] = values.slice(-CIRCLE_VALUES).map(Number);
  const point = { lat: lat ?? 0, lng: lng ?? 0 };
  let [examined, low, high] = [0, 0, Number.POSITIVE_INFINITY];
  let meters = NEAR_FIRST_METERS;
  let hasShrunk = false;
  for (let step = 0; step < NEAR_STEPS_MAX; step++) {
    const present = [...others, ...areaValues({ ...point, meters }).all];
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
        if (examined > NEAR_CANDIDATES_MAX || number(bound(bytes, present)) > QUICK_STEPS_BYTES) return null;
        const records = read(bound(page, present));
        if (records === null || records.length === limit) return records;
        // Some of those to be skipped may be missing as well.
        matching = records.length + (records.length === 0 ? 0 : offset);
      }
      if (meters === NEAR_METERS_MAX) return null;
    }
    if (high < NEAR_METERS_MIN || high / low < 1.01) return null;
    // Somewhat more than are wanted, if points lie evenly.
    const grown = low * Math.min(8, Math.max(1.4, Math.sqrt((1.5 * wanted) / Math.max(1, matching))));
    meters =
      high === Number.POSITIVE_INFINITY
        ? Math.min(grown, NEAR_METERS_MAX)
        : Math.sqrt(Math.max(low, high / 1000) * high);
  }
  return null;
}

/** Numbers of `AreaValues.all`, and of its circle. */
const CIRCLE_VALUES = 4;
const AREA_VALUES = 6 + CIRCLE_VALUES;
