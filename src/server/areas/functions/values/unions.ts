import type { Compile } from "./containers.ts";
import { REFUSED, type Run, type Visit } from "./run.ts";
import { choiceVisit } from "./scalars.ts";
import { kindOf, type Schema } from "./schema.ts";
import { isPlainObject, textOf } from "./text.ts";

/** Validates a union: the first member that accepts the value. */
export function unionVisit(schema: Schema, members: readonly Schema[], compile: Compile): Visit {
  if (members.every((one) => one.const !== undefined))
    return choiceVisit(
      schema,
      members.map((one) => one.const),
    );
  const visits = members.map((one) => ({ schema: one, visit: compile(one) }));
  const kinds = [...new Set(members.map(nameOf))].join(" or ");
  return (value, run) => {
    for (const { visit } of visits) {
      const visited = run.tries(visit, value);
      if (visited !== REFUSED) return visited;
    }
    if (run.isSettled) return REFUSED;
    // The member that was probably intended reports the faults.
    const fitting = visits.filter((one) => fits(one.schema, value, run));
    const [only] = fitting;
    if (only !== undefined && fitting.length === 1) return only.visit(value, run);
    if (fitting.length > 1) return run.refuse(schema, "invalid_value", "is not valid");
    return run.refuse(schema, "invalid_type", `must be ${kinds}`);
  };
}

function fits({ type, format, anyOf, allOf }: Schema, value: unknown, run: Run): boolean {
  if (anyOf !== undefined) return anyOf.some((one) => fits(one, value, run));
  if (allOf !== undefined) return allOf.some((one) => fits(one, value, run));
  const text = run.form === "json" ? null : textOf(value);
  switch (type) {
    case "object":
      return isPlainObject(value) || (text !== null && /^\s*\{/.test(text));
    case "array":
      return Array.isArray(value) || (text !== null && /^\s*\[/.test(text));
    case "integer":
    case "number":
      return typeof value === "number";
    case "string":
      return textOf(value) !== null && format !== "binary";
    default:
      return type === typeof value;
  }
}

const NAMES: Readonly<Record<string, string>> = {
  object: "an object",
  array: "an array",
  string: "a string",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  null: "null",
  Date: "a date",
};
const nameOf = (schema: Schema): string =>
  (kindOf(schema) === "File" ? "a file" : NAMES[String(schema.type)]) ?? "another value";

/**
 * Validates an intersection: all members must accept the value. Members of the object that none of them names are refused, unless
 * one of them is open.
 */
export function intersectVisit(schema: Schema, parts: readonly Visit[], known: ReadonlySet<string> | null): Visit {
  const refuse: Visit = (_, run) => run.refuse(schema, "unknown_field", "is not a member that is known here");
  return (given, run) => {
    let value = given;
    let isRefused = false;
    for (const part of parts) {
      const visited = part(value, run);
      if (visited !== REFUSED) value = visited;
      else {
        isRefused = true;
        if (run.isSettled) return REFUSED;
      }
    }
    if (known !== null && isPlainObject(value)) {
      for (const name of Object.keys(value)) {
        if (known.has(name)) continue;
        run.within(name, refuse, null);
        isRefused = true;
        if (run.isSettled) break;
      }
    }
    return isRefused ? REFUSED : value;
  };
}
