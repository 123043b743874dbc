import { type TObject, type TProperties, Type } from "typebox";
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import { createParser, type Parser } from "../../../kernel/schema/parser.ts";
import type { JsonSchema } from "../../../kernel/schema/strict.ts";
import type { Query } from "../bodies/query.ts";

const NOTHING: Record<string, unknown> = Object.freeze({});

export type QueryParser = ReturnType<typeof createQueryParser>;

/** Creates the parser. `properties` are strings, numbers, booleans or unions of constants. */
export function createQueryParser(properties: TProperties, { takesOthers = false } = {}) {
  const schemas = new Map<string, JsonSchema>(Object.entries(properties) as [string, JsonSchema][]);
  let parser: Parser<TObject> | null = null;
  const isNothingValid = Object.values(properties).every((schema) => Type.IsOptional(schema));
  return {
    known: { names: new Set(schemas.keys()), takesOthers },
    /** Parses the parameters to the types of their schemas. Errors: 400 that names each invalid one. */
    parse(query: Query): Record<string, unknown> {
      const { sent } = query;
      if (sent.size === 0 && isNothingValid) return NOTHING;
      const values: JsonObject = {};
      for (const [name, text] of sent) {
        const schema = schemas.get(name);
        if (schema !== undefined) values[name] = queryValue(schema, text);
      }
      parser ??= createParser(Type.Object(properties));
      return parser.parse(values);
    },
  };
}

/** Converts the text to the schema's type; returns the text where that fails, so that the parser refuses it. */
function queryValue({ type }: JsonSchema, text: string): JsonValue {
  if ((type === "integer" || type === "number") && /^-?\d+(?:\.\d+)?$/.test(text)) {
    // A number beyond a double is out of any bounds, or counts as the largest.
    return Math.max(-Number.MAX_VALUE, Math.min(Number(text), Number.MAX_VALUE));
  }
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
