import type { JsonValue } from "../../../kernel/json/json.ts";
import type { GeoBox, GeoCircle, GeoPoint } from "../../../kernel/records/geo.ts";
import type { FilterOperator } from "../records.ts";
import type { Equality, Membership, Several, TextSearch } from "./filters.ts";

/** Whether a field of this type holds JSON: of any kind, or of a type of its own. */
type IsJson<Value> = JsonValue extends Value
  ? true
  : [NonNullable<Value>] extends [string | number | boolean | GeoPoint]
    ? false
    : // Several references, which are never null.
      [Value] extends [string[]]
      ? false
      : true;

type NumbersOf<R> = { [Name in keyof R & string]: [NonNullable<R[Name]>] extends [number] ? Name : never }[keyof R &
  string];
type ColumnsOf<R> = {
  [Name in keyof R & string]: IsJson<R[Name]> extends true
    ? never
    : [NonNullable<R[Name]>] extends [GeoPoint | string[]]
      ? never
      : Name;
}[keyof R & string];
type TextsOf<R> = { [Name in keyof R & string]: [NonNullable<R[Name]>] extends [string] ? Name : never }[keyof R &
  string];

/** Selection of an aggregate: counts, sums and comparisons. */
export type SelectionOf<R> = string extends keyof R
  ? string
  : "count()" | `${"sum" | "avg"}(${NumbersOf<R>})` | `${"min" | "max"}(${ColumnsOf<R>})`;

/** Grouping of an aggregate: a field, or a datetime or date by its minutes, hours, days and so on. */
export type GroupingOf<R> = string extends keyof R
  ? string
  : ColumnsOf<R> | `${TextsOf<R>}:${"minute" | "hour" | "day" | "week" | "month" | "year"}`;

type ResultOf<R, Key> = Key extends "count()"
  ? number
  : Key extends `${"sum" | "avg"}(${string})`
    ? number | null
    : Key extends `${"min" | "max"}(${infer Name})`
      ? Name extends keyof R
        ? R[Name] | null
        : JsonValue
      : Key extends keyof R
        ? R[Key]
        : string | null;

/** One group of an aggregate, with its groupings and selections by name. */
export type AggregatedOf<R, Selected extends string, Grouped extends string> = string extends keyof R
  ? { [name: string]: JsonValue }
  : { [Key in Selected | Grouped]: ResultOf<R, Key> };

type Area = "within" | "inBox";

/** Fields of a record, and paths into JSON fields: `address.city`. */
export type FieldOf<R> = string extends keyof R
  ? string
  : { [Name in keyof R & string]: IsJson<R[Name]> extends true ? Name | `${Name}.${string}` : Name }[keyof R & string];

/** Fields that have an order: neither points nor several references. Fields of JSON may have a path. */
export type SortFieldOf<R> = string extends keyof R
  ? string
  : {
      [Name in keyof R & string]: IsJson<R[Name]> extends true
        ? Name | `${Name}.${string}`
        : [NonNullable<R[Name]>] extends [GeoPoint | string[]]
          ? never
          : Name;
    }[keyof R & string];

/** Fields with points. */
export type GeoFieldOf<R> = string extends keyof R
  ? string
  : { [Name in keyof R & string]: [NonNullable<R[Name]>] extends [GeoPoint] ? Name : never }[keyof R & string];

/** Type of a field; any JSON at a path into one. */
export type ValueAt<R, Field> = Field extends keyof R ? R[Field] : JsonValue;

/** Operators for a field of this type. */
export type OperatorOf<Value> =
  IsJson<Value> extends true
    ? FilterOperator
    : [NonNullable<Value>] extends [GeoPoint]
      ? Equality | Area
      : [Value] extends [string[]]
        ? Several
        : Exclude<FilterOperator, Area | Several | ([NonNullable<Value>] extends [string] ? never : TextSearch)>;

/** Operand type for a field of this type. */
export type OperandOf<Value, Operator> =
  IsJson<Value> extends true
    ? JsonValue | readonly JsonValue[] | Value
    : [NonNullable<Value>] extends [GeoPoint]
      ? Operator extends "within"
        ? GeoCircle
        : Operator extends "inBox"
          ? GeoBox
          : null
      : [Value] extends [string[]]
        ? Operator extends "has"
          ? string
          : readonly string[]
        : Operator extends Membership
          ? readonly (Value | null)[]
          : Operator extends Equality
            ? Value | null
            : Operator extends TextSearch
              ? string
              : NonNullable<Value>;
