import { Kind, OptionalKind, TransformKind } from "@sinclair/typebox";

/** A schema of TypeBox, as Elysia's `t` builds it. */
export interface Schema {
  readonly [Kind]?: string;
  readonly [OptionalKind]?: string;
  readonly [TransformKind]?: { Decode(value: unknown): unknown };
  readonly $id?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly not?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly unevaluatedProperties?: boolean | Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: Schema | readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly contains?: Schema;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly default?: unknown;
  readonly error?: unknown;
  /** The content types of a file. */
  readonly extension?: string | string[];
  /** Elysia's name of an object or a list that may arrive as text. */
  readonly elysiaMeta?: string;
  readonly noValidate?: boolean;
}

export const kindOf = (schema: Schema): string => schema[Kind] ?? "";

/** Formats by which Elysia's types mark the text that represents another type. */
const TEXT_FORMATS = new Set(["numeric", "integer", "boolean", "ObjectString", "ArrayString"]);
const TEXT_TYPES = new Set(["ObjectString", "ArrayString", "ArrayQuery"]);

/** Returns the value's schema of an Elysia type that also accepts a text, such as `t.Numeric`; null: it is none. */
export function textualOf(schema: Schema): Schema | null {
  const { anyOf = [], elysiaMeta = "" } = schema;
  if (anyOf.length !== 2) return null;
  const isTextual = TEXT_TYPES.has(elysiaMeta);
  const text = anyOf.find(({ type, format = "" }) => type === "string" && (isTextual || TEXT_FORMATS.has(format)));
  return text === undefined ? null : (anyOf.find((one) => one !== text) ?? null);
}
