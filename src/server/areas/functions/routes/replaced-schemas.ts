import { TransformKind } from "@sinclair/typebox";
import { type Declared, Part } from "../values/part.ts";
import type { PartName } from "../values/refused.ts";
import { type Schema, textualOf } from "../values/schema.ts";

const PARTS = ["body", "query", "params", "headers", "cookie"] as const satisfies readonly PartName[];

/** The schemas that a route, guard or macro declares. */
export type Schemas = { [Name in (typeof PARTS)[number]]?: Declared } & { response?: unknown };

interface Declaring {
  definitions: { type: Readonly<Record<string, Schema>> };
  /** The schema that a guard applies to all routes after it. */
  validator: { getCandidate(): Schemas };
  /** The schemas of guards that apply beside the route's own. */
  standaloneValidator: Record<string, readonly Schemas[] | null>;
}

/**
 * Replaces each schema of a route with a `Part`, which Elysia calls like a validator of another library. Returns a function that
 * restores the guards' schemas of the instance, once Elysia has added the route.
 */
export function replaceSchemas(
  declaring: Declaring,
  hooks: Schemas & { standaloneValidator?: readonly Schemas[] },
): () => void {
  const ofGuards = declaring.standaloneValidator;
  const candidate = declaring.validator.getCandidate();
  const beside = [...(hooks.standaloneValidator ?? []), ...Object.values(ofGuards).flatMap((all) => all ?? [])];
  const models = () => declaring.definitions.type;
  for (const name of PARTS) {
    const [first, ...others] = [hooks[name] ?? candidate[name], ...beside.map((one) => one[name])].filter(
      (declared) => declared !== undefined,
    );
    if (first !== undefined) hooks[name] = new Part(name, [first, ...others], models);
  }
  const response = hooks.response ?? candidate.response;
  if (response !== undefined) hooks.response = withoutIdleConversions(response);
  if (beside.length === 0) return () => {};
  // Elysia handles their schemas of answers.
  const answers = beside.flatMap((one) =>
    one.response === undefined ? [] : [{ response: withoutIdleConversions(one.response) }],
  );
  hooks.standaloneValidator = answers;
  declaring.standaloneValidator = {};
  return () => {
    declaring.standaloneValidator = ofGuards;
  };
}

/**
 * Copies a route's declaration of answers (a schema, one for each status, or a name) without conversions that return every answer
 * unchanged, such as those of `t.Integer`: Elysia would spend a microsecond on each value.
 */
function withoutIdleConversions(declared: unknown): unknown {
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
