import type { JsonValue } from "../kernel/json/json.ts";

/** A table record as rules, hooks and `app` see it: it has every declared field, null where there is no value. */
export interface TableRecord {
  [field: string]: JsonValue;
}

export type FilterOperator =
  | "=="
  | "!="
  | ">"
  | ">="
  | "<"
  | "<="
  | "contains"
  | "icontains"
  | "startsWith"
  | "istartsWith"
  | "in"
  | "not in";

/** `[field, operator, value]`. */
export type FilterTuple = readonly [field: string, operator: FilterOperator, value: JsonValue | readonly JsonValue[]];

/** Tuples combine with AND; an empty filter keeps everything. */
export type Filter = readonly FilterTuple[];
