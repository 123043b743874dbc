import type { JsonValue } from "../../../kernel/json/json.ts";
import type { Conditions } from "../../../kernel/records/filter-group.ts";
import type { GeoBox, GeoCircle, GeoPoint } from "../../../kernel/records/geo.ts";
import type { AnyField, AnyFilter, FilterOperator } from "../records.ts";

export type Equality = "==" | "!=";
type Ordering = ">" | ">=" | "<" | "<=";
export type Membership = "in" | "not in";
export type Several = "has" | "hasAny" | "hasAll";
export type TextSearch = Exclude<FilterOperator, Equality | Ordering | Membership | Several | "within" | "inBox">;

type ColumnCondition<Name extends string, Value> =
  | readonly [field: Name, operator: Equality, value: Value | null]
  | readonly [field: Name, operator: Ordering, value: Value]
  | readonly [field: Name, operator: Membership, value: readonly (Value | null)[]]
  | ([Value] extends [string] ? readonly [field: Name, operator: TextSearch, value: string] : never);

/** A condition on a field with points. */
type GeoCondition<Name extends string> =
  | readonly [field: Name, operator: Equality, value: null]
  | readonly [field: Name, operator: "within", value: GeoCircle]
  | readonly [field: Name, operator: "inBox", value: GeoBox];

/** A condition on a JSON field, or on a path into it such as `address.city`. */
type JsonCondition<Name extends string> = readonly [
  field: Name | `${Name}.${string}`,
  operator: FilterOperator,
  value: JsonValue | readonly JsonValue[],
];

/** A condition on the ids of several references. */
type SeveralCondition<Name extends string> =
  | readonly [field: Name, operator: "has", value: string]
  | readonly [field: Name, operator: "hasAny" | "hasAll", value: readonly string[]];

type ConditionOf<Name extends string, Value> = JsonValue extends Value
  ? JsonCondition<Name>
  : NonNullable<Value> extends GeoPoint
    ? GeoCondition<Name>
    : [Value] extends [string[]]
      ? SeveralCondition<Name>
      : NonNullable<Value> extends string | number | boolean
        ? ColumnCondition<Name, NonNullable<Value>>
        : JsonCondition<Name>;

type ConditionIn<R> =
  | { [Name in keyof R & string]: ConditionOf<Name, R[Name]> }[keyof R & string]
  // Accepts a condition built elsewhere as a `Filter`.
  | readonly [field: AnyField, operator: FilterOperator, value: JsonValue | readonly JsonValue[]];

/** A filter over records `R`: a list of conditions and groups, or a single group. Untyped where `R` is `TableRecord`. */
export type FilterOf<R> = string extends keyof R ? AnyFilter : Conditions<ConditionIn<R>>;
