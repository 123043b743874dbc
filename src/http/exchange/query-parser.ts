import { type TObject, type TProperties, Type } from "typebox";
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { createParser, type Parser } from "../../kernel/schema/parser.ts";
import type { JsonSchema } from "../../kernel/schema/strict.ts";
import type { KnownParameters, Query } from "./query.ts";

export interface QueryParser {
  /** The names of the declared parameters; null where others may come. */
  known: KnownParameters;
  /** The parameters that were sent, with the types of their schemas. Errors: 400 that names each one at fault. */
  parse(query: Query): Record<string, unknown>;
}

const NOTHING: Record<string, unknown> = Object.freeze({});

/** `properties` are strings, numbers, booleans or unions of constants. Of a repeated parameter the first counts. */
export function createQueryParser(properties: TProperties, { takesOthers = false } = {}): QueryParser {
  const entries = Object.entries(properties);
  let parser: Parser<TObject> | null = null;
  const isNothingValid = entries.every(([, schema]) => Type.IsOptional(schema));
  return {
    known: takesOthers ? null : new Set(Object.keys(properties)),
    parse(query) {
      query.refuseUnknown();
      if (query.text === "" && isNothingValid) return NOTHING;
      const values: JsonObject = {};
      for (const [name, schema] of entries) {
        const text = query.get(name);
        if (text !== null) values[name] = queryValue(schema as JsonSchema, text);
      }
      parser ??= createParser(Type.Object(properties));
      return parser.parse(values);
    },
  };
}

/** The text as a value of the schema's type; the text itself where it is none, so that the parser refuses it. */
function queryValue({ type }: JsonSchema, text: string): JsonValue {
  if ((type === "integer" || type === "number") && /^-?\d+(?:\.\d+)?$/.test(text)) {
    // A number beyond a double is out of any bounds, or counts as the largest.
    return Math.max(-Number.MAX_VALUE, Math.min(Number(text), Number.MAX_VALUE));
  }
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
