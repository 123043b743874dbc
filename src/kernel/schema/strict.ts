import { illFormed } from "../fields.ts";
import { type FieldRule, fieldRule } from "./types.ts";

/** A JSON Schema as the parsers read it; `~refine` is where TypeBox keeps refinements. */
export interface JsonSchema {
  type?: string | readonly string[];
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly JsonSchema[];
  properties?: Readonly<Record<string, JsonSchema>>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
  maxProperties?: number;
  patternProperties?: Readonly<Record<string, JsonSchema>>;
  items?: JsonSchema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  "~refine"?: readonly { check: FieldRule; error: () => string }[];
}

const wellFormed = fieldRule<string>(
  (value) => value.isWellFormed(),
  (name) => ({ code: "invalid_value", message: illFormed(name) }),
);
const WELL_FORMED = { check: wellFormed, error: () => "is not well-formed" };

/**
 * Returns the schema as it is enforced: objects have no members but their declared ones, unless they say `additionalProperties`;
 * texts are well-formed, as SQLite and UTF-8 need them. `format` only documents: what a format requires is a refinement.
 */
export function strictSchema(schema: JsonSchema): JsonSchema {
  const { format: _, ...strict } = schema as JsonSchema & { format?: string };
  if (schema.anyOf !== undefined) strict.anyOf = schema.anyOf.map(strictSchema);
  if (schema.items !== undefined) strict.items = strictSchema(schema.items);
  if (schema.patternProperties !== undefined) {
    const patterns = ofMembers(schema.patternProperties);
    // `Type.Record(Type.String(), Type.Unknown())` allows everything, and would match each name against a pattern.
    if (Object.values(patterns).every(isAnything)) delete strict.patternProperties;
    else strict.patternProperties = patterns;
  }
  if (schema.properties !== undefined) {
    strict.properties = ofMembers(schema.properties);
    strict.additionalProperties ??= false;
  }
  const rules = schema["~refine"] ?? [];
  const isFreeText = schema.type === "string" && schema.const === undefined && schema.enum === undefined;
  if (isFreeText) strict["~refine"] = [WELL_FORMED, ...rules];
  else if (rules.length > 0) strict["~refine"] = rules;
  return strict;
}

const isAnything = (schema: JsonSchema): boolean => Object.keys(schema).length === 0;

const ofMembers = (members: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> =>
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, strictSchema(schema)]));
