import { type TSchema, Type } from "typebox";
import { type Authored, plain } from "../../../../kernel/schema/authored.ts";
import { strictSchema } from "../../../../kernel/schema/strict.ts";
import { RECORD_PART } from "../../../config/sections/tables/file-fields.ts";
import { referringName } from "../expand/paths.ts";
import { EXPANDED_PER_RECORD_MAX, ID_LENGTH_MAX, INDEXED_TEXT_LENGTH_MAX } from "../limits.ts";
import {
  type Column,
  DOCUMENT_COLUMN,
  type FileColumn,
  type FileField,
  idsMax,
  type TableModel,
} from "../model/model.ts";

type JsonSchema = Record<string, unknown>;

/** Schemas of field operators, which change a field other than by a value. Common to all tables. */
export const OPERATOR_SCHEMAS = {
  FieldIncrement: {
    type: "object",
    properties: { $op: { const: "increment" }, value: { type: "number" } },
    required: ["$op", "value"],
    additionalProperties: false,
  },
  FieldDeletion: {
    type: "object",
    properties: { $op: { const: "deleteField" } },
    required: ["$op"],
    additionalProperties: false,
  },
  FieldReference: {
    type: "object",
    properties: { $op: { enum: ["add", "remove"] }, value: { type: "string" } },
    required: ["$op", "value"],
    additionalProperties: false,
  },
} satisfies Record<string, JsonSchema>;

/** Schema of the highlights in a search result. */
export const HIGHLIGHTS = Type.Record(Type.String(), Type.String(), {
  description: "Of a search: marked excerpts by field",
});

/** Returns a reference to a schema of the OpenAPI document. */
export const schemaRef = (name: string): TSchema => ({ $ref: `#/components/schemas/${name}` });

/** Returns the schema of a table's records as answered by the endpoints. */
export function answeredRecord(model: TableModel): JsonSchema {
  return {
    type: "object",
    properties: {
      ...propertiesOf(model, fieldSchema),
      ...expandProperty(model),
      ...highlightsProperty(model),
      ...distanceProperty(model),
    },
    required: model.columns.flatMap(({ name }) => (name === DOCUMENT_COLUMN ? [] : [name])),
    additionalProperties: model.isSchemaless,
  };
}

/**
 * Returns the property that `expand` adds to a record; none when no table refers to another, or when a field has the name.
 * [TB408]
 */
function expandProperty(model: TableModel): JsonSchema {
  const recordOf = ({ namespace, name }: TableModel) => schemaRef(`${namespace}.${name}`);
  const one = [...model.outgoing, ...model.far].map(({ column, to }) => {
    const several = { type: "array", items: recordOf(to), maxItems: idsMax(column) };
    return [column.name, column.links === null ? { anyOf: [recordOf(to), { type: "null" }] } : several];
  });
  const many = model.incoming.map((edge) => {
    const items = { type: "array", items: recordOf(edge.from), maxItems: EXPANDED_PER_RECORD_MAX };
    const properties = { items, hasMore: { type: "boolean" } };
    return [referringName(edge), { type: "object", properties, required: Object.keys(properties) }];
  });
  if (one.length + many.length === 0 || model.byName.has("expand")) return {};
  const properties = Object.fromEntries([...one, ...many]);
  return { expand: { type: "object", description: "The records that the request asked for", properties } };
}

/** Returns the property that a search adds to a record; none when the table has no search. */
function highlightsProperty(model: TableModel): JsonSchema {
  return model.fts === null ? {} : { highlights: HIGHLIGHTS };
}

/** Returns the property that `near` adds to a record; none when the table has no points, or a field has the name. [TB758] */
function distanceProperty(model: TableModel): JsonSchema {
  if (model.byName.has("distance") || !model.columns.some(({ type }) => type === "geo")) return {};
  return { distance: { type: "number", minimum: 0, description: "Metres from the point of `near`" } };
}

/** Returns the schema of records as a client inserts them. Fields that a hook may fill in are not required. */
export function insertedRecord(model: TableModel): JsonSchema {
  const isFilledIn = model.config.hooks?.beforeInsert !== undefined;
  const isRequired = ({ field, file }: Column): boolean =>
    !isFilledIn &&
    file === null &&
    field?.required === true &&
    field.default === undefined &&
    field.onUpdate === undefined;
  return {
    type: "object",
    properties: propertiesOf(model, (column) =>
      column.file === null ? withDefault(column, withNote(column, sentSchema(column, model))) : noFiles(column.file),
    ),
    required: model.columns.filter(isRequired).map(({ name }) => name),
    additionalProperties: model.isSchemaless,
  };
}

/** Returns the schema of the changes of a record. */
export function updatedRecord(model: TableModel): JsonSchema {
  return {
    type: "object",
    properties: propertiesOf(model, (column) => {
      if (column.field === null) return { description: "Ignored, whatever it is" };
      const isNumeric = column.type === "number" || column.type === "integer";
      const operators = [
        ...(isNumeric ? [schemaRef("FieldIncrement")] : []),
        ...(column.links === null ? [] : [schemaRef("FieldReference")]),
        schemaRef("FieldDeletion"),
      ];
      return { anyOf: [sentSchema(column, model), ...operators] };
    }),
    additionalProperties: model.isSchemaless,
  };
}

function propertiesOf(model: TableModel, schemaOf: (column: Column, model: TableModel) => JsonSchema): JsonSchema {
  const shown = model.columns.filter(({ name }) => name !== DOCUMENT_COLUMN);
  return Object.fromEntries(shown.map((column) => [column.name, schemaOf(column, model)]));
}

function fieldSchema(column: Column, model: TableModel): JsonSchema {
  const { field, isNullable, name } = column;
  if (column.file !== null) return fileSchema(column.file);
  if (column.type === "json") return {};
  if (column.type === "references") return severalSchema(column);
  const schema: JsonSchema = { ...TYPES[column.type] };
  if (isNullable) schema["type"] = [schema["type"], "null"];
  if (name === "id") schema["maxLength"] = ID_LENGTH_MAX;
  if (field === null) return schema;
  const [minimum, maximum] = schema["format"] === undefined && isText(column) ? LENGTHS : VALUES;
  if (field.min !== undefined) schema[minimum] = field.min;
  if (field.max !== undefined) schema[maximum] = field.max;
  else if (model.fts?.fields.includes(name) === true) schema["maxLength"] = INDEXED_TEXT_LENGTH_MAX;
  if (field.enum !== undefined) schema["enum"] = isNullable ? [...field.enum, null] : [...field.enum];
  const { pattern } = field;
  // JSON Schema has no flags: a pattern with flags is left out.
  if (typeof pattern === "string") schema["pattern"] = pattern;
  else if (pattern !== undefined && /^[gu]*$/.test(pattern.flags)) schema["pattern"] = pattern.source;
  return schema;
}

const LENGTHS = ["minLength", "maxLength"] as const;
const VALUES = ["minimum", "maximum"] as const;
const isText = ({ type }: Column): boolean => ["string", "text", "date", "datetime"].includes(type);

const TYPES: Readonly<Record<Exclude<Column["type"], "json" | "references">, JsonSchema>> = {
  string: { type: "string" },
  text: { type: "string" },
  date: { type: "string", format: "date" },
  datetime: { type: "string", format: "date-time" },
  geo: {
    type: "object",
    properties: {
      lat: { type: "number", minimum: -90, maximum: 90 },
      lng: { type: "number", minimum: -180, maximum: 180 },
    },
    required: ["lat", "lng"],
    additionalProperties: false,
  },
  number: { type: "number" },
  integer: { type: "integer" },
  boolean: { type: "boolean" },
};

/** Returns the schema of a value that is sent: null empties several references, which are never answered as null. */
const sentSchema = (column: Column, model: TableModel): JsonSchema => {
  if (column.field?.schema !== undefined) {
    const schema = describedSchema(column.field.schema);
    return column.isNullable ? { anyOf: [schema, { type: "null" }] } : schema;
  }
  const schema = fieldSchema(column, model);
  return column.links === null || column.field?.required === true ? schema : { ...schema, type: ["array", "null"] };
};

/** Returns the schema of JSON as it is enforced. Values that were stored before need not match it. */
const describedSchema = (schema: object): JsonSchema =>
  JSON.parse(
    JSON.stringify(strictSchema(plain(schema as Authored)), (name, value) =>
      name.startsWith("~") ? undefined : value,
    ),
  );

/** Returns the schema of several references. */
const severalSchema = (column: Column): JsonSchema => ({
  type: "array",
  items: { type: "string", maxLength: ID_LENGTH_MAX },
  uniqueItems: true,
  maxItems: idsMax(column),
  ...(column.field?.required === true ? { minItems: 1 } : {}),
});

/** Schema of the value of a new record without files: those come as parts of a form. */
const noFiles = ({ many }: FileField): JsonSchema =>
  many === null ? { type: "null" } : { type: "array", items: {}, maxItems: 0 };

/** Schema of a record's files as answered, and as sent back. */
function fileSchema({ many }: FileField): JsonSchema {
  return many === null
    ? { anyOf: [RECORD_FILE, { type: "null" }] }
    : { type: "array", items: RECORD_FILE, maxItems: many };
}

const RECORD_FILE: JsonSchema = {
  type: "object",
  properties: {
    id: { type: "string" },
    name: { type: "string" },
    size: { type: "integer" },
    type: { type: "string", description: "The media type" },
    url: { type: "string", description: "The path of its bytes" },
  },
  required: ["id"],
};

/** Returns the schema of a form with a record and its files: any where `files` is empty. */
export function recordForm(record: TSchema, files: readonly FileColumn[]): TSchema {
  const bytes = { type: "string", format: "binary" };
  const parts = files.map(({ name, file }) => [name, file.many === null ? bytes : { type: "array", items: bytes }]);
  return {
    type: "object",
    description: `${RECORD_PART} comes first; each other part is a file of the field of its name`,
    properties: { [RECORD_PART]: record, ...Object.fromEntries(parts) },
    additionalProperties: files.length === 0,
  };
}

function withDefault({ field }: Column, schema: JsonSchema): JsonSchema {
  return field?.default === undefined ? schema : { ...schema, default: field.default };
}

function withNote({ name, field }: Column, schema: JsonSchema): JsonSchema {
  if (field !== null) return schema;
  const description =
    name === "id" ? "Generated if it is missing" : "Set by the server; only a service key may send it";
  return { ...schema, description };
}
