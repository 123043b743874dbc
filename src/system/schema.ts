import type { Field, FieldType, PlatformConfig, Reference, TableConfig } from "../config/types.ts";
import type { JsonValue } from "../kernel/json.ts";

/** What clients may know of a field: its type and the constraints on its values. */
export interface FieldDescription {
  type: FieldType;
  /** Never null; an insert must provide it unless it has a default. */
  required: boolean;
  unique: boolean;
  /** The server fills it in when an insert omits it (`id`, `createdAt`, `updatedAt`). */
  generated: boolean;
  default?: JsonValue;
  min?: number;
  max?: number;
  /** The source of the regular expression. */
  pattern?: string;
  patternFlags?: string;
  enum?: readonly (string | number)[];
  references?: Required<Reference>;
  /** An SQL expression. */
  check?: string;
  onUpdate?: "now";
}

export interface TableDescription {
  /** Records may have fields other than those listed. */
  schemaless: boolean;
  fields: Record<string, FieldDescription>;
  /** null: the table has no full-text search. */
  fts: { fields: readonly string[]; tokenize: "unicode61" | "trigram" | "porter" } | null;
  indexes: { fields: readonly string[]; unique: boolean }[];
}

export interface SchemaDescription {
  namespaces: Record<string, { instance: boolean; tables: Record<string, TableDescription> }>;
}

/**
 * Types and constraints of the declared tables, fields in the order of a record. Every member is copied by name, so that
 * rules, hooks and migrations cannot get into the answer by accident. [SY6]
 */
export function describeSchema(databases: NonNullable<PlatformConfig["databases"]>): SchemaDescription {
  const namespaces = Object.entries(databases).map(([name, namespace]) => {
    const tables = Object.entries(namespace.tables).map(([table, config]) => [table, describeTable(config)] as const);
    return [name, { instance: namespace.instance === true, tables: Object.fromEntries(tables) }] as const;
  });
  return { namespaces: Object.fromEntries(namespaces) };
}

function describeTable({ schema, fts, indexes = [] }: TableConfig): TableDescription {
  const fields: TableDescription["fields"] = { id: generated("string", { unique: true }) };
  for (const [name, field] of Object.entries(schema ?? {})) if (field !== false) fields[name] = describeField(field);
  if (schema?.["createdAt"] !== false) fields["createdAt"] ??= generated("datetime");
  if (schema?.["updatedAt"] !== false) fields["updatedAt"] ??= generated("datetime", { onUpdate: "now" });
  return {
    schemaless: schema === undefined,
    fields,
    fts: fts === undefined ? null : { tokenize: "unicode61", ...("fields" in fts ? fts : { fields: fts }) },
    indexes: indexes.map((index) => ({ fields: index.fields, unique: index.unique === true })),
  };
}

const generated = (type: FieldType, more: Partial<FieldDescription> = {}): FieldDescription => ({
  type,
  required: false,
  unique: false,
  generated: true,
  ...more,
});

function describeField(field: Field): FieldDescription {
  const { type, default: fallback, min, max, pattern, enum: choices, references, check, onUpdate } = field;
  return {
    type,
    required: field.required === true,
    unique: field.unique === true,
    generated: false,
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(pattern === undefined ? {} : describePattern(pattern)),
    ...(choices === undefined ? {} : { enum: choices }),
    ...(references === undefined ? {} : { references: describeReference(references) }),
    ...(check === undefined ? {} : { check }),
    ...(onUpdate === undefined ? {} : { onUpdate }),
  };
}

function describePattern(pattern: string | RegExp): { pattern: string; patternFlags?: string } {
  if (typeof pattern === "string") return { pattern };
  return pattern.flags === "" ? { pattern: pattern.source } : { pattern: pattern.source, patternFlags: pattern.flags };
}

const describeReference = (references: string | Reference): Required<Reference> => ({
  column: "id",
  onDelete: "restrict",
  ...(typeof references === "string" ? { table: references } : references),
});
