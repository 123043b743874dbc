import type { JsonValue } from "../../../kernel/json/json.ts";
import type { Conditions } from "../../../kernel/records/filter-group.ts";
import type { GeoBox, GeoCircle, GeoPoint } from "../../../kernel/records/geo.ts";
import type { AnyField, AnyFilter, FilterOperator } from "../records.ts";
import type { RecordOf } from "./records.ts";

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

/** A comparison of a related record's field with one of the record in which the relation stands: a field of the same type. */
type ComparisonOf<R, Outer> = [Outer] extends [never]
  ? never
  : {
      [Name in keyof R & string]: NonNullable<R[Name]> extends string | number | boolean
        ? readonly [
            field: Name,
            operator: Equality | Ordering,
            value: { readonly field: SameKind<Outer, NonNullable<R[Name]>> },
          ]
        : never;
    }[keyof R & string];

/** Names of the fields whose values can be compared with a value. */
type SameKind<R, Value> = {
  [Name in keyof R & string]: KindOf<NonNullable<R[Name]>> extends KindOf<Value> ? Name : never;
}[keyof R & string];

type KindOf<Value> = [Value] extends [string]
  ? "text"
  : [Value] extends [number]
    ? "number"
    : [Value] extends [boolean]
      ? "boolean"
      : never;

/** A relation of records `Outer` to those of one of the tables. */
type RelationOf<Tables, Outer> = {
  [Table in keyof Tables & string]: {
    readonly table: Table;
    readonly where: FilterBy<Tables, RecordOf<Tables[Table]>, Outer>;
  };
}[keyof Tables & string];

type GroupBy<Tables, R, Outer> =
  | { readonly or: readonly FilterBy<Tables, R, Outer>[] }
  | { readonly and: readonly FilterBy<Tables, R, Outer>[] }
  | { readonly not: FilterBy<Tables, R, Outer> }
  | { readonly some: RelationOf<Tables, R> }
  | { readonly none: RelationOf<Tables, R> };

/** A filter over records `R`. `Outer`: the record in which its relation stands; never outside of relations. */
type FilterBy<Tables, R, Outer> = string extends keyof R
  ? AnyFilter
  : readonly (ConditionIn<R> | ComparisonOf<R, Outer> | GroupBy<Tables, R, Outer>)[] | GroupBy<Tables, R, Outer>;

/** A filter over the records of a table, with relations to the other tables of its namespace. */
export type FilterIn<Tables, Name extends keyof Tables> = FilterBy<Tables, RecordOf<Tables[Name]>, never>;
