import { badField } from "../../../../kernel/errors.ts";
import { distanceBetween, type GeoPoint } from "../../../../kernel/records/geo.ts";
import { parsePoint } from "../../../../kernel/records/geo-values.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type AreaValues, areaValues } from "../filters/areas.ts";
import type { Column, TableModel } from "../model/model.ts";

/** Order of a list by the distance of a `geo` field from a point. Records without a point are last, equal distances by id. */
export interface Near {
  column: Column;
  point: GeoPoint;
}

/** Parses `at:48.2:16.37`; null for none. Errors: 400. */
export function parseNear(model: TableModel, text: string | undefined): Near | null {
  if (text === undefined || text === "") return null;
  const [name = "", lat, lng, ...rest] = text.split(":");
  const column = model.byName.get(name);
  if (column === undefined) throw badField("near", "unknown_field", `near: ${name} is not a field of ${model.name}`);
  if (column.type !== "geo") throw badField("near", "invalid_type", `near: ${name} is ${column.type}, and not geo`);
  const point = rest.length === 0 ? parsePoint(lat, lng) : null;
  if (point === null) {
    const message = `near must be field:lat:lng, such as ${name}:48.2:16.37, with lat from -90 to 90 and lng from -180 to 180`;
    throw badField("near", "invalid_value", message);
  }
  return { column, point };
}

/** Returns the record with its distance, in place of a field of that name; without it where it has no point. [TB755] */
export function withDistance(shown: TableRecord, record: TableRecord, { column, point }: Near): TableRecord {
  const { distance: _, ...others } = shown;
  const at = record[column.name] ?? null;
  // A stored value of a geo field is a point or null.
  return at === null ? others : { ...others, distance: distanceBetween(point, at as GeoPoint) };
}

/** Values of a search for the nearest records: the last ones of a request. The radius is replaced by others on the way. */
export const nearValues = ({ point }: Near, meters = 0): AreaValues => areaValues({ ...point, meters });
