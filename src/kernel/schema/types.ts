import { type Static, type TSchema, Type } from "typebox";
import type { FieldProblem } from "../errors.ts";

// What the declarations of endpoints, messages and config sections use beside TypeBox's own `Type`.

/** The schema, or null. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** A member that may be missing; null counts as missing. */
export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(nullable(schema));

/** An object with any members. A parser passes it on as it is. */
export const AnyObject = Type.Record(Type.String(), Type.Unknown());

/** A condition that JSON Schema cannot express, and what a client reads where it does not hold. */
export interface FieldRule {
  (value: unknown): boolean;
  /** `name` is the path of the field, such as `users.3.email`. */
  problem(name: string): FieldProblem;
}

export function fieldRule<Value>(check: (value: Value) => boolean, problem: FieldRule["problem"]): FieldRule {
  // TypeBox calls it only with values that hold to the rest of the schema.
  return Object.assign((value: unknown) => check(value as Value), { problem });
}

/** The schema with one more condition; `problem` names it where `check` returns false. */
export function refine<Schema extends TSchema>(
  schema: Schema,
  check: (value: Static<Schema>) => boolean,
  problem: FieldRule["problem"],
) {
  return Type.Refine(schema, fieldRule(check, problem), () => problem("").message);
}
