import { t } from "elysia";

interface Schema {
  [keyword: string]: unknown;
}

/**
 * The message of Elysia's error for a refused value. Its own one holds the whole value as JSON, which a large body makes cost tens
 * of milliseconds.
 */
const withoutValue = ({ type, on }: { type: string; on: string }): string => JSON.stringify({ type, on });

/**
 * Not `false`: Elysia removes members from values of such an object instead of refusing them. In the OpenAPI document both mean the
 * same.
 */
const NOTHING = t.Never({ error: withoutValue });

/**
 * A copy of a schema in which objects that do not say otherwise refuse members that they do not name, at every depth, and whose errors
 * do not repeat the value. A reference to a model, or a schema of another library, stays as it is.
 */
export function refusingUnknown(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null || "~standard" in schema || "$ref" in schema) return schema;
  return copied(schema as Schema, false);
}

/** `isPart`: an object of `allOf`, whose members the other ones may name. */
function copied(schema: Schema, isPart: boolean): Schema {
  // With its symbols, by which TypeBox knows the kind of a schema.
  const copy: Schema = Object.create(Object.getPrototypeOf(schema), Object.getOwnPropertyDescriptors(schema));
  copy["error"] ??= withoutValue;
  const { properties, items, anyOf, oneOf, allOf, patternProperties, additionalProperties } = schema;
  if (isObject(properties)) copy["properties"] = mapped(properties);
  if (isObject(patternProperties)) copy["patternProperties"] = mapped(patternProperties);
  if (isObject(additionalProperties)) copy["additionalProperties"] = refusingUnknown(additionalProperties);
  if (Array.isArray(items)) copy["items"] = items.map((item) => refusingUnknown(item));
  else if (isObject(items)) copy["items"] = refusingUnknown(items);
  for (const [keyword, schemas] of Object.entries({ anyOf, oneOf })) {
    if (Array.isArray(schemas)) copy[keyword] = schemas.map((one) => refusingUnknown(one));
  }
  if (Array.isArray(allOf)) {
    copy["allOf"] = allOf.map((one) => (isObject(one) ? copied(one, true) : one));
    copy["unevaluatedProperties"] ??= false;
  }
  const isClosed = schema["type"] === "object" && isObject(properties) && !isPart;
  if (isClosed && (additionalProperties === undefined || additionalProperties === false)) {
    copy["additionalProperties"] = NOTHING;
  }
  return copy;
}

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const mapped = (schemas: Schema): Schema =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, refusingUnknown(schema)]));
