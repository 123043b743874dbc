import { isJsonObject, type JsonValue } from "../json/json.ts";
import type { GeoBox, GeoCircle, GeoPoint } from "./geo.ts";

const BOUNDS = { lat: 90, lng: 180, south: 90, north: 90, west: 180, east: 180, meters: Number.POSITIVE_INFINITY };

/** Example of a point, for messages. */
export const POINT_EXAMPLE = '{ "lat": 48.2, "lng": 16.37 }';

/**
 * Describes what is wrong with an object that must have exactly these members, numbers within their bounds; null: nothing.
 */
function fault(value: unknown, names: readonly (keyof typeof BOUNDS)[]): string | null {
  if (!isJsonObject(value) || Object.keys(value).length !== names.length) return `must be { ${names.join(", ")} }`;
  for (const name of names) {
    const number = value[name];
    if (typeof number !== "number" || !Number.isFinite(number)) return `must have a number as ${name}`;
    const most = BOUNDS[name];
    if (most === Number.POSITIVE_INFINITY ? number < 0 : Math.abs(number) > most) {
      const range = most === Number.POSITIVE_INFINITY ? "at least 0" : `from -${most} to ${most}`;
      return `must have a ${name} ${range}, got ${number}`;
    }
  }
  return null;
}

/** Describes what is wrong with the value of a `geo` field; null: nothing. */
export const pointFault = (value: unknown): string | null => fault(value, ["lat", "lng"]);

/** Returns the area of a condition, or what is wrong with it. */
export function areaOf(operator: "within" | "inBox", value: JsonValue | undefined): GeoCircle | GeoBox | string {
  if (operator === "within") {
    // Checked, so that it has these members.
    return fault(value, ["lat", "lng", "meters"]) ?? (value as GeoCircle);
  }
  const wrong = fault(value, ["south", "west", "north", "east"]);
  if (wrong !== null) return wrong;
  const box = value as GeoBox;
  return box.south > box.north ? `must have a south of at most its north, got ${box.south} and ${box.north}` : box;
}

/** Parses `48.2:16.37`; null for anything else. */
export function parsePoint(lat: string | undefined, lng: string | undefined): GeoPoint | null {
  if (![lat, lng].every((text) => text !== undefined && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)))
    return null;
  const point = { lat: Number(lat), lng: Number(lng) };
  return pointFault(point) === null ? point : null;
}

/** Reports whether a text is the JSON of a point. */
export function isGeoText(text: string): boolean {
  try {
    return pointFault(JSON.parse(text)) === null;
  } catch {
    return false;
  }
}
