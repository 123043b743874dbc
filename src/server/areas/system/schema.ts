import { type Static, Type } from "typebox";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { FIELD_TYPES, type FieldType } from "../../../kernel/records/field-types.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { type DeclaredReference, referenceOf, typeOf } from "../../config/sections/tables/fields.ts";
import type { Field, PlatformConfig, TableConfig } from "../../config/types.ts";

const FieldDescription = Type.Object({
  type: Type.Enum([...FIELD_TYPES]),
  required: Type.Boolean({ description: "Never null; an insert must provide it unless it has a default" }),
  unique: Type.Boolean(),
  fixed: Type.Optional(Type.Literal(true, { description: "Only service keys may change it after the insert" })),
  generated: Type.Boolean({ description: "The server fills it in when an insert omits it" }),
  default: Type.Optional(Type.Unsafe<JsonValue>({})),
  min: Type.Optional(Type.Number({ description: "Characters of text, value of numbers, number of references" })),
  max: Type.Optional(Type.Number()),
  types: Type.Optional(Type.Array(Type.String(), { description: "The media types of a file" })),
  many: Type.Optional(Type.Integer({ description: "The number of files: values are arrays" })),
  pattern: Type.Optional(Type.String({ description: "The source of a regular expression" })),
  patternFlags: Type.Optional(Type.String()),
  enum: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Number()]))),
  references: Type.Optional(
    Type.Object({
      namespace: Type.Optional(Type.String({ description: "The namespace of the table, if it is another one" })),
      table: Type.String(),
      column: Type.String(),
      onDelete: Type.String(),
      mayBeHidden: Type.Optional(Type.Boolean()),
    }),
  ),
  check: Type.Optional(Type.String({ description: "An SQL expression" })),
  onUpdate: Type.Optional(Type.Literal("now")),
  validate: Type.Optional(
    Type.Literal("new", { description: "Values stored before need not be within enum, min, max and pattern" }),
  ),
});
type FieldDescription = Static<typeof FieldDescription>;

const TableDescription = Type.Object({
  view: Type.Optional(Type.Literal(true, { description: "It is a view, which is read-only" })),
  schemaless: Type.Boolean({ description: "Records may have fields other than those listed" }),
  users: Type.Optional(
    Type.Literal(true, { description: "The table of users: its records come and go with accounts" }),
  ),
  display: Type.Optional(
    Type.String({ description: "The field by which people know a record, where the config says so" }),
  ),
  fields: Type.Record(Type.String(), FieldDescription),
  fts: nullable(
    Type.Object({ fields: Type.Array(Type.String()), tokenize: Type.Enum(["unicode61", "trigram", "porter"]) }),
  ),
  indexes: Type.Array(Type.Object({ fields: Type.Array(Type.String()), unique: Type.Boolean() })),
});
type TableDescription = Static<typeof TableDescription>;

export const SchemaDescription = Type.Object(
  {
    namespaces: Type.Record(
      Type.String(),
      Type.Object({ instance: Type.Boolean(), tables: Type.Record(Type.String(), TableDescription) }),
    ),
  },
  { description: "Tables by namespace and name, without rules, hooks and migrations" },
);
type SchemaDescription = Static<typeof SchemaDescription>;

/**
 * Describes types and constraints of the declared tables, fields in the order of a record. Every member is copied by name, so that
 * rules, hooks and migrations cannot leak by accident. [SY6]
 */
export function describeSchema(databases: NonNullable<PlatformConfig["databases"]>): SchemaDescription {
  const namespaces = Object.entries(databases).map(([name, namespace]) => {
    const tables = Object.entries(namespace.tables).map(([table, config]) => [table, describeTable(config)] as const);
    return [name, { instance: namespace.instance === true, tables: Object.fromEntries(tables) }] as const;
  });
  return { namespaces: Object.fromEntries(namespaces) };
}

/** Fields of the table of users that an update of a record does not change. */
const OF_ACCOUNT = ["email", "isAnonymous"];

function describeTable({ schema, display, fts, indexes = [], view, isUsers }: TableConfig): TableDescription {
  const fields: TableDescription["fields"] = { id: generated("string", { unique: true }) };
  for (const [name, field] of Object.entries(schema ?? {})) {
    if (field === false) continue;
    const isGenerated = isUsers === true && OF_ACCOUNT.includes(name);
    fields[name] = { ...describeField(field), ...(isGenerated ? { generated: true } : {}) };
  }
  if (schema?.["createdAt"] !== false) fields["createdAt"] ??= generated("datetime");
  if (schema?.["updatedAt"] !== false) fields["updatedAt"] ??= generated("datetime", { onUpdate: "now" });
  return {
    ...(view === undefined ? {} : { view: true }),
    schemaless: schema === undefined,
    ...(isUsers === true ? { users: true } : {}),
    ...(display === undefined ? {} : { display }),
    fields,
    fts: fts === undefined ? null : describeSearch(fts),
    indexes: indexes.map((index) => ({ fields: [...index.fields], unique: index.unique === true })),
  };
}

function describeSearch(fts: NonNullable<TableConfig["fts"]>): TableDescription["fts"] {
  if (!("fields" in fts)) return { fields: [...fts], tokenize: "unicode61" };
  return { fields: [...fts.fields], tokenize: fts.tokenize ?? "unicode61" };
}

const generated = (type: FieldType, more: Partial<FieldDescription> = {}): FieldDescription => ({
  type,
  required: false,
  unique: false,
  generated: true,
  ...more,
});

function describeField(field: Field): FieldDescription {
  const { default: fallback, min, max, pattern, enum: choices, check, onUpdate, validate, types, many } = field;
  const references = referenceOf(field);
  return {
    type: typeOf(field),
    required: field.required === true,
    unique: field.unique === true,
    generated: false,
    ...(field.fixed === true ? { fixed: true } : {}),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(types === undefined ? {} : { types: [...types] }),
    ...(many === undefined ? {} : { many }),
    ...(pattern === undefined ? {} : describePattern(pattern)),
    ...(choices === undefined ? {} : { enum: [...choices] }),
    ...(references === null ? {} : { references: describeReference(references) }),
    ...(check === undefined ? {} : { check }),
    ...(onUpdate === undefined ? {} : { onUpdate }),
    ...(validate === undefined ? {} : { validate }),
  };
}

function describePattern(pattern: string | RegExp): { pattern: string; patternFlags?: string } {
  if (typeof pattern === "string") return { pattern };
  return pattern.flags === "" ? { pattern: pattern.source } : { pattern: pattern.source, patternFlags: pattern.flags };
}

const describeReference = ({ namespace, table, column, onDelete, mayBeHidden }: DeclaredReference) => ({
  ...(namespace === null ? {} : { namespace }),
  table,
  column,
  onDelete,
  ...(mayBeHidden ? { mayBeHidden } : {}),
});
