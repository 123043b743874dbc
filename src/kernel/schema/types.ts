import { type Static, type TSchema, Type } from "typebox";
import type { FieldProblem } from "../errors.ts";

// Schemas for the declarations of endpoints, messages and config sections, beside TypeBox's own `Type`.

/** Allows null beside the values of the schema. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Declares a member that may be missing; null counts as missing. */
export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(nullable(schema));

/** An object with any members. A parser passes it on unchanged. */
export const AnyObject = Type.Record(Type.String(), Type.Unknown());

/** A condition that JSON Schema cannot express, with the message for a client whose value violates it. */
export interface FieldRule {
  (value: unknown): boolean;
  /** Returns the problem of a violation. `name` is the path of the field, such as `users.3.email`. */
  problem(name: string): FieldProblem;
}

export function fieldRule<Value>(check: (value: Value) => boolean, problem: FieldRule["problem"]): FieldRule {
  // TypeBox calls it only with values that conform to the rest of the schema.
  return Object.assign((value: unknown) => check(value as Value), { problem });
}

/** Adds a condition to the schema; `problem` describes the fault where `check` returns false. */
export function refine<Schema extends TSchema>(
  schema: Schema,
  check: (value: Static<Schema>) => boolean,
  problem: FieldRule["problem"],
) {
  return Type.Refine(schema, fieldRule(check, problem), () => problem("").message);
}
