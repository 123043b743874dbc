import type { JsonValue } from "../../kernel/json/json.ts";
import type { FilterOperator } from "../../server/config/records.ts";

type Equality = "==" | "!=";
type Membership = "in" | "not in";
type TextSearch = "contains" | "icontains" | "startsWith" | "istartsWith";

/** The fields of a record, and paths into those with JSON: `address.city`. */
export type FieldOf<R> = string extends keyof R
  ? string
  : { [Name in keyof R & string]: JsonValue extends R[Name] ? Name | `${Name}.${string}` : Name }[keyof R & string];

/** The type of a field, and any JSON at a path into one. */
export type ValueAt<R, Field> = Field extends keyof R ? R[Field] : JsonValue;

/** The operators that a field of this type has. */
export type OperatorOf<Value> = JsonValue extends Value
  ? FilterOperator
  : [NonNullable<Value>] extends [string]
    ? FilterOperator
    : Exclude<FilterOperator, TextSearch>;

/** What a field of this type is compared with. */
export type OperandOf<Value, Operator> = JsonValue extends Value
  ? JsonValue | readonly JsonValue[]
  : Operator extends Membership
    ? readonly (Value | null)[]
    : Operator extends Equality
      ? Value | null
      : Operator extends TextSearch
        ? string
        : NonNullable<Value>;
