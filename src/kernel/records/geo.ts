import type { JsonValue } from "../json/json.ts";

// Points on the earth. `filters/geo-sql.ts` writes the same calculations as SQL, with the same operations in the same order, so that
// both give the same numbers.

/** A point: latitude from −90 to 90, longitude from −180 to 180 degrees. 180 and −180 are one meridian. */
// A type, not an interface: it is a value of JSON.
export type GeoPoint = { lat: number; lng: number };

/** The value of `within`: the points at most `meters` away. */
export type GeoCircle = { lat: number; lng: number; meters: number };

/** The value of `inBox`, edges included. Where `west` is greater than `east` it crosses the date line. */
export type GeoBox = { south: number; west: number; north: number; east: number };

/** Mean radius of the earth in metres. */
export const EARTH_RADIUS = 6_371_008.8;

export const DEGREE = Math.PI / 180;

/**
 * Returns the distance in metres along the surface (haversine). By the colatitude all longitudes of a pole are one point, and the
 * difference of longitudes is the shorter way around, so that 180 and −180 are one meridian.
 */
export function distanceBetween(from: GeoPoint, to: GeoPoint): number {
  const turn = Math.abs(to.lng - from.lng);
  const lat = Math.sin(((to.lat - from.lat) * DEGREE) / 2);
  const lng = Math.sin((Math.min(turn, 360 - turn) * DEGREE) / 2);
  const fromPole = Math.sin((90 - Math.abs(from.lat)) * DEGREE);
  const toPole = Math.sin((90 - Math.abs(to.lat)) * DEGREE);
  return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(lat * lat + fromPole * toPole * (lng * lng))));
}

/** Returns the stored value of a `geo` field; null for none. */
export const pointOf = (value: JsonValue | undefined): GeoPoint | null =>
  // Stored values have been validated.
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as GeoPoint) : null;

/** Returns the ranges of longitudes of a box, one or two. A range that ends at 180 has −180 too. */
export function meridiansOf({ west, east }: GeoBox): [west: number, east: number][] {
  if (west > east) {
    return [
      [west, 180],
      [-180, east],
    ];
  }
  if (west === -180 && east < 180)
    return [
      [west, east],
      [180, 180],
    ];
  if (east === 180 && west > -180)
    return [
      [west, east],
      [-180, -180],
    ];
  return [[west, east]];
}

/** Reports whether a stored value is a point in the circle or box of a condition. */
export function isInArea(value: JsonValue, area: GeoCircle | GeoBox): boolean {
  const point = pointOf(value);
  if (point === null) return false;
  if ("meters" in area) return distanceBetween(area, point) <= area.meters;
  const { lat, lng } = point;
  return area.south <= lat && lat <= area.north && meridiansOf(area).some(([west, east]) => west <= lng && lng <= east);
}
