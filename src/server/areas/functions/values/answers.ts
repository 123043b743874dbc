import { TransformKind } from "@sinclair/typebox";
import { type Schema, textualOf } from "./schema.ts";

/**
 * Copies a route's declaration of answers (a schema, one for each status, or a name) without conversions that return every answer
 * unchanged, such as those of `t.Integer`: Elysia would spend a microsecond on each value.
 */
export function withoutIdleConversions(declared: unknown): unknown {
  if (typeof declared !== "object" || declared === null || "~standard" in declared) return declared;
  if (Array.isArray(declared)) return declared.map(withoutIdleConversions);
  // Includes the symbols by which TypeBox knows the kind of a schema.
  const copy = Object.create(Object.getPrototypeOf(declared), Object.getOwnPropertyDescriptors(declared));
  for (const [name, inner] of Object.entries(declared))
    if (HOLDING.has(name) || isStatus(name)) copy[name] = withoutIdleConversions(inner);
  for (const name of ["properties", "patternProperties"]) if (name in declared) copy[name] = ofMembers(copy[name]);
  const isIdle = TransformKind in declared && textualOf(declared as Schema) !== null && !("elysiaMeta" in declared);
  if (isIdle) delete copy[TransformKind];
  return copy;
}

const HOLDING = new Set(["items", "anyOf", "oneOf", "allOf", "additionalProperties"]);
const isStatus = (name: string): boolean => /^[1-5]\d\d$/.test(name);

const ofMembers = (members: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, withoutIdleConversions(schema)]));
