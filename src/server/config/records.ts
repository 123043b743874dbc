import type { JsonValue } from "../../kernel/json/json.ts";
import type { GroupOf } from "../../kernel/records/filter-group.ts";

/** A table record as rules, hooks and `app` see it: it has every declared field, null where there is no value. */
export interface TableRecord {
  [field: string]: JsonValue;
}

/** A file of a record. A type, so that it is a JSON object. */
export type RecordFile = {
  id: string;
  /** The name without its path. */
  name: string;
  /** Bytes. */
  size: number;
  /** The media type that its sender has declared. */
  type: string;
  /** The path at which who may read the record gets the bytes. */
  url: string;
};

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
  | "within"
  | "inBox"
  | "in"
  | "not in"
  | "has"
  | "hasAny"
  | "hasAll";

/** A field that the table's type does not declare. No text has this type. */
export type AnyField = string & { readonly "~anyField": never };

/** A condition: `[field, operator, value]`. `field` is a text. */
export type FilterTuple = readonly [
  // biome-ignore lint/suspicious/noExplicitAny: a `Filter` is taken where the fields of a table are known, but a literal there is not
  field: any,
  operator: FilterOperator,
  value: JsonValue | readonly JsonValue[],
];

/** A group of conditions, as `anyOf`, `allOf` and `not` make it. */
export type FilterGroup = GroupOf<FilterTuple>;

/** A whole filter: a list of conditions and groups, or a single group. */
export type AnyFilter = Filter | FilterGroup;

/** A filter, whose conditions and groups must all match; an empty filter matches every record. */
export type Filter = readonly (FilterTuple | FilterGroup)[];
