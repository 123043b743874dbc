import { badField } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { DEGREE, EARTH_RADIUS, type GeoBox, type GeoCircle, type GeoPoint } from "../../../../kernel/records/geo.ts";
import { areaOf } from "../../../../kernel/records/geo-values.ts";
import type { SqlValue } from "../../../db/index.ts";
import type { FieldPath } from "../model/field-path.ts";
import type { Column } from "../model/model.ts";
import type { AreaOperator } from "../model/operators.ts";

/** An SQL expression or SELECT with its values. */
interface AreaSql {
  sql: string;
  params: SqlValue[];
}

/** Returns a copy of the area of a condition. Errors: 400 for a field of another type, and an area that does not exist. */
export function areaIn(field: FieldPath, operator: AreaOperator, value: JsonValue, name: string): GeoCircle | GeoBox {
  if (field.column.type !== "geo") {
    throw badField(name, "invalid_type", `${name}: ${operator} is for geo fields, ${field.name} is none`);
  }
  const area = areaOf(operator, value);
  if (typeof area === "string") throw badField(name, "invalid_value", `${name}: the value of ${operator} ${area}`);
  return { ...area };
}

/** Degrees by which the bounds of a circle are widened, because they are calculated otherwise than its distances. */
const MARGIN = 1e-6;
type Range = [west: number, east: number];
/** A range of longitudes with no point in it. */
const NOWHERE: Range = [1000, -1000];

/** Bounds of latitude, and two ranges of longitude, in which all points of an area are. */
interface Bounds {
  south: number;
  north: number;
  meridians: readonly [Range, Range];
}

/** Returns the ranges of longitudes of a box. A range that ends at 180 has −180 too. */
function meridiansOf({ west, east }: GeoBox): Bounds["meridians"] {
  if (west > east)
    return [
      [west, 180],
      [-180, east],
    ];
  if (west === -180 && east < 180)
    return [
      [west, east],
      [180, 180],
    ];
  return east === 180 && west > -180
    ? [
        [west, east],
        [-180, -180],
      ]
    : [[west, east], NOWHERE];
}

/** Returns the bounds of a circle: all longitudes where it reaches a pole. */
function boundsOf({ lat, lng, meters }: GeoCircle): Bounds {
  const angle = meters / EARTH_RADIUS;
  const height = angle / DEGREE + MARGIN;
  const [south, north] = [Math.max(-90, lat - height), Math.min(90, lat + height)];
  const everywhere: Bounds = { south, north, meridians: [[-180, 180], NOWHERE] };
  if (north === 90 || south === -90) return everywhere;
  const ratio = Math.sin(angle) / Math.cos(lat * DEGREE);
  const width = Math.asin(Math.min(1, ratio)) / DEGREE + MARGIN;
  // So close to a pole, rounding may hide that the circle reaches it.
  if (!(ratio < 0.999)) return everywhere;
  const [west, east] = [lng - width, lng + width];
  if (west <= -180)
    return {
      south,
      north,
      meridians: [
        [-180, east],
        [west + 360, 180],
      ],
    };
  if (east >= 180)
    return {
      south,
      north,
      meridians: [
        [west, 180],
        [-180, east - 360],
      ],
    };
  return { south, north, meridians: [[west, east], NOWHERE] };
}

/** Values that the SQL of an area compares with, or slots in their place. */
export class AreaValues {
  readonly bounds: readonly SqlValue[];
  /** Centre and radius of a circle; null for a box. */
  readonly circle: readonly SqlValue[] | null;

  constructor(bounds: readonly SqlValue[], circle: readonly SqlValue[] | null) {
    this.bounds = bounds;
    this.circle = circle;
  }

  get all(): SqlValue[] {
    return [...this.bounds, ...(this.circle ?? [])];
  }

  /** Returns the same with other values, in the order of `all`. */
  with(values: readonly SqlValue[]): AreaValues {
    const count = this.bounds.length;
    return new AreaValues(values.slice(0, count), this.circle === null ? null : values.slice(count));
  }
}

/** Returns the values of a condition's area. */
export function areaValues(value: unknown): AreaValues {
  if (value instanceof AreaValues) return value;
  // Validated by `areaIn`.
  const area = value as GeoCircle | GeoBox;
  const isCircle = "meters" in area;
  const { south, north, meridians } = isCircle ? boundsOf(area) : { ...area, meridians: meridiansOf(area) };
  return new AreaValues(
    [south, north, ...meridians[0], ...meridians[1]],
    isCircle ? [...centreOf(area), area.meters] : null,
  );
}

/** Returns what the SQL of distances from a point needs: latitude, longitude, and the sine of the distance from the pole. */
export const centreOf = ({ lat, lng }: GeoPoint): number[] => [lat, lng, Math.sin((90 - Math.abs(lat)) * DEGREE)];

const latOf = (column: string): string => `json_extract(${column}, '$.lat')`;
const lngOf = (column: string): string => `json_extract(${column}, '$.lng')`;

/** The coordinates of a point as SQL. */
export interface PointSql {
  lat: string;
  lng: string;
}

/** Returns the coordinates of a column's point. */
export const pointSql = (column: string): PointSql => ({ lat: latOf(column), lng: lngOf(column) });

/** Returns the distance of a point as `distanceBetween` calculates it; `from` as `centreOf` returns it. */
export function distanceSql(to: PointSql, from: readonly SqlValue[]): AreaSql {
  const [lat = null, lng = null, fromPole = null] = from;
  const latSine = `sin((${to.lat} - ?) * ${DEGREE} / 2)`;
  const turn = `abs(${to.lng} - ?)`;
  const lngSine = `sin(min(${turn}, 360 - ${turn}) * ${DEGREE} / 2)`;
  const toPole = `sin((90 - abs(${to.lat})) * ${DEGREE})`;
  const square = `${latSine} * ${latSine} + ? * ${toPole} * (${lngSine} * ${lngSine})`;
  return {
    sql: `${2 * EARTH_RADIUS} * asin(min(1, sqrt(${square})))`,
    params: [lat, lat, fromPole, lng, lng, lng, lng],
  };
}

/** Returns the SQL of a condition with an area, tested on the record itself. */
export function areaToSql(column: string, value: unknown): AreaSql {
  const { bounds, circle } = areaValues(value);
  if (circle !== null) {
    const { sql, params } = distanceSql(pointSql(column), circle);
    return { sql: `${sql} <= ?`, params: [...params, circle[3] ?? null] };
  }
  const between = `${lngOf(column)} BETWEEN ? AND ?`;
  return { sql: `${latOf(column)} BETWEEN ? AND ? AND (${between} OR ${between})`, params: [...bounds] };
}

/**
 * Returns a SELECT of the row ids that an R-tree has in the bounds of an area. Its coordinates are rounded outwards, so that it
 * has all points of the area, and some near it.
 */
export function candidatesOf({ geoIndex }: Column, value: unknown): AreaSql {
  const [south = null, north = null, ...meridians] = areaValues(value).bounds;
  const [west = null, east = null, otherWest = null, otherEast = null] = meridians;
  const part = `SELECT "id" FROM ${geoIndex} WHERE "south" <= ? AND "north" >= ? AND "west" <= ? AND "east" >= ?`;
  return {
    sql: `${part} UNION ALL ${part}`,
    params: [north, south, east, west, north, south, otherEast, otherWest],
  };
}
