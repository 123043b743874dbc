import { Has as isKnownFormat, Test as isOfFormat } from "typebox/format";
import type { JsonSchema } from "./strict.ts";
import { type FieldRule, fieldRule } from "./types.ts";

// Schemas that the author of a config wrote, with TypeBox or with `t` from "elysia".

/** The types of values that JSON has. */
const TYPES = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);

export type Authored = JsonSchema & { format?: string; allOf?: readonly Authored[]; anyOf?: readonly Authored[] };

/** Explains what makes a schema unusable for JSON values; null when nothing does. */
export function authoredProblem(schema: unknown): string | null {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return "is not an object";
  const { type, properties, items, anyOf, allOf, patternProperties } = schema as Authored;
  const types = type === undefined ? [] : [type].flat();
  const other = types.find((one) => !TYPES.has(String(one)));
  if (other !== undefined) return `has the type "${String(other)}", which JSON does not have`;
  if (Array.isArray(items)) return "is a tuple: describe its elements by t.Array";
  if (anyOf !== undefined) return fitting(anyOf).length > 0 ? null : "is a union of values that JSON does not have";
  const inner = [...Object.values(properties ?? {}), ...Object.values(patternProperties ?? {}), ...(allOf ?? [])];
  if (items !== undefined) inner.push(items);
  for (const one of inner) {
    const problem = authoredProblem(one);
    if (problem !== null) return problem;
  }
  return null;
}

/**
 * Returns the schema for JSON values. A union keeps the members that JSON can hold: `t.Integer()` also allows texts, as queries of
 * URLs are, and `t.Date()` instances of Date. A `format` that TypeBox knows is enforced.
 */
export function plain(schema: Authored): JsonSchema {
  const { anyOf, allOf, properties, patternProperties, items, format, ...others } = schema;
  const members = anyOf === undefined ? [] : fitting(anyOf);
  const [only] = members;
  if (members.length === 1 && only !== undefined) return plain(only);
  return {
    ...others,
    ...(members.length > 0 ? { anyOf: members.map(plain) } : {}),
    ...(allOf === undefined ? {} : { allOf: allOf.map(plain) }),
    ...(properties === undefined ? {} : { properties: eachOf(properties) }),
    ...(patternProperties === undefined ? {} : { patternProperties: eachOf(patternProperties) }),
    ...(items === undefined ? {} : { items: plain(items) }),
    ...(format !== undefined && isKnownFormat(format) ? { "~refine": [rule(format)] } : {}),
  };
}

const eachOf = (schemas: Readonly<Record<string, JsonSchema>>) =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, plain(schema)]));

/** Returns the members of a union that JSON can hold, without the texts that stand for another type in a query. */
function fitting(members: readonly Authored[]): readonly Authored[] {
  const held = members.filter((one) => authoredProblem(one) === null);
  const others = held.filter(({ type, format }) => type !== "string" || format === undefined || isKnownFormat(format));
  return others.length > 0 ? others : held;
}

function rule(format: string): { check: FieldRule; error: () => string } {
  const check = fieldRule<unknown>(
    (value) => typeof value !== "string" || isOfFormat(format, value),
    (name) => ({ code: "pattern_mismatch", message: `${name} must have the format ${format}` }),
  );
  return { check, error: () => "has another format" };
}
