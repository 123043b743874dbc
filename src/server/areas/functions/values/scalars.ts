import { FormatRegistry } from "@sinclair/typebox";
import type { REFUSED, Run, Visit } from "./run.ts";
import type { Schema } from "./schema.ts";
import { numberOf, textOf } from "./text.ts";

export function stringVisit(schema: Schema): Visit {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema;
  const expression = pattern === undefined ? null : new RegExp(pattern);
  const isOfFormat = format === undefined ? undefined : FormatRegistry.Get(format);
  return (value, run) => {
    const text = textOf(value);
    if (text === null) return run.refuse(schema, "invalid_type", "must be a string");
    if (text.length < minLength) return run.refuse(schema, "too_short", `must have at least ${minLength} characters`);
    if (text.length > maxLength) return run.refuse(schema, "too_long", `must have at most ${maxLength} characters`);
    if (expression?.test(text) === false) return run.refuse(schema, "pattern_mismatch", `must match ${pattern}`);
    if (isOfFormat?.(text) === false) return run.refuse(schema, "invalid_value", `must have the format ${format}`);
    return text;
  };
}

export function numberVisit(schema: Schema): Visit {
  const isWhole = schema.type === "integer";
  const problem = boundsOf(schema);
  const kind = isWhole ? "a whole number" : "a number";
  return (given, run) => {
    const value = run.form === "json" ? given : fromText(given, numberOf);
    if (typeof value !== "number" || !Number.isFinite(value))
      return run.refuse(schema, "invalid_type", `must be ${kind}`);
    if (isWhole && !Number.isInteger(value)) return run.refuse(schema, "invalid_type", `must be ${kind}`);
    return problem(value, run) ?? value;
  };
}

/** Returns a check that refuses a number out of its bounds; it returns null within them. */
function boundsOf(schema: Schema): (value: number, run: Run) => typeof REFUSED | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  return (value, run) => {
    const wrong = (code: "too_small" | "too_large" | "invalid_value", wanted: string): typeof REFUSED =>
      run.refuse(schema, code, `must be ${wanted}, got ${value}`);
    if (minimum !== undefined && value < minimum) return wrong("too_small", `at least ${minimum}`);
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
      return wrong("too_small", `more than ${exclusiveMinimum}`);
    }
    if (maximum !== undefined && value > maximum) return wrong("too_large", `at most ${maximum}`);
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) {
      return wrong("too_large", `less than ${exclusiveMaximum}`);
    }
    const isMultiple =
      multipleOf === undefined || Math.abs(value / multipleOf - Math.round(value / multipleOf)) < 1e-10;
    return isMultiple ? null : wrong("invalid_value", `a multiple of ${multipleOf}`);
  };
}

export function booleanVisit(schema: Schema): Visit {
  return (given, run) => {
    const value = run.form === "json" ? given : fromText(given, booleanOf);
    return typeof value === "boolean" ? value : run.refuse(schema, "invalid_type", "must be true or false");
  };
}

export function nullVisit(schema: Schema): Visit {
  return (value, run) => (value === null ? null : run.refuse(schema, "invalid_type", "must be null"));
}

/** Validates one of some constants; a text may represent a number or boolean among them. */
export function choiceVisit(schema: Schema, choices: readonly unknown[]): Visit {
  const names = choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)));
  const wanted = names.length === 1 ? String(names[0]) : `one of ${names.join(", ")}`;
  const known = new Set(choices);
  const byText = new Map(choices.map((choice) => [String(choice), choice]));
  return (given, run) => {
    const text = textOf(given);
    const value = text === null ? given : text;
    if (known.has(value)) return value;
    if (run.form !== "json" && text !== null && byText.has(text)) return byText.get(text);
    return run.refuse(schema, "invalid_value", `must be ${wanted}`);
  };
}

/** Converts a text to the value that it represents; returns other values unchanged. */
function fromText<Value>(given: unknown, toValue: (text: string) => Value | null): unknown {
  const text = textOf(given);
  return text === null ? given : (toValue(text) ?? text);
}

const booleanOf = (text: string): boolean | null => (text === "true" ? true : text === "false" ? false : null);
