import type { JsonObject, JsonValue } from "../json/json.ts";
import { compareText } from "./text-match.ts";
import { type ValuePath, valueAt } from "./value-path.ts";

/** A value as SQLite orders it: booleans are 0 and 1, objects and arrays their JSON. */
export type OrderValue = string | number | null;

export function orderValue(value: JsonValue | undefined): OrderValue {
  if (value === undefined || value === null) return null;
  if (typeof value === "boolean") return Number(value);
  return typeof value === "object" ? JSON.stringify(value) : value;
}

/** Compares in ascending order: null, then numbers, then texts by code point. */
export function compareValues(left: OrderValue, right: OrderValue): number {
  if (typeof left === "string") return typeof right === "string" ? compareText(left, right) : 1;
  if (typeof right === "string") return -1;
  if (left === null) return right === null ? 0 : -1;
  return right === null ? 1 : left - right;
}

export interface OrderTerm {
  readonly field: ValuePath;
  readonly direction: "asc" | "desc";
}

/** Compares records like the ORDER BY of a list. The order is total where the last term is the id. [TB6] */
export function compareRecords(terms: readonly OrderTerm[], left: JsonObject, right: JsonObject): number {
  for (const { field, direction } of terms) {
    const order = compareValues(orderValue(valueAt(left, field)), orderValue(valueAt(right, field)));
    if (order !== 0) return direction === "asc" ? order : -order;
  }
  return 0;
}
