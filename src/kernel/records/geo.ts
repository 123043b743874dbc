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

/** Reports whether a stored value, a point or null, is in the circle or box of a condition. */
export function isInArea(value: JsonValue, area: GeoCircle | GeoBox): boolean {
  if (value === null) return false;
  // Validated when it was stored.
  const { lat, lng } = value as GeoPoint;
  if ("meters" in area) return distanceBetween(area, value as GeoPoint) <= area.meters;
  const { south, west, north, east } = area;
  const isAt = (one: number) => (west > east ? one >= west || one <= east : one >= west && one <= east);
  return lat >= south && lat <= north && (isAt(lng) || (Math.abs(lng) === 180 && isAt(-lng)));
}
