import { instantOf } from "../../../../kernel/time/iso-datetime.ts";
import { checkedFields } from "../../../config/sections/tables/checked-fields.ts";
import { IDS_DEFAULT, referenceOf, typeOf } from "../../../config/sections/tables/fields.ts";
import { VIEW_DOCUMENT } from "../../../config/sections/tables/view-sample.ts";
import { viewSource } from "../../../config/sections/tables/view-sql.ts";
import type {
  Embedding,
  Field,
  FieldType,
  FullTextSearch,
  Index,
  NamespaceConfig,
  TableConfig,
} from "../../../config/types.ts";
import {
  type DeclaredColumn,
  type DeclaredTable,
  type DeclaredValues,
  embeddedName,
  geoIndexName,
  indexName,
  linksName,
  primaryKeyIndexName,
  quoteIdentifier,
  type RehearsalJob,
  unembeddedName,
} from "../../../db/index.ts";
import { EMBEDDED_AT_ONCE_DEFAULT } from "../limits.ts";

export interface Column {
  name: string;
  /** The type of its values; that of files is `json`. */
  type: Exclude<FieldType, "file">;
  /** Declaration of the field; null for id, createdAt, updatedAt and the document of a schemaless table. */
  field: Field | null;
  /** Quoted identifier. */
  sql: string;
  /** The name in the file, where it is another one. */
  storedAs?: string;
  isNullable: boolean;
  isUnique: boolean;
  /** Quoted name of the R-tree of a `geo` field; null for other types. */
  geoIndex: string | null;
  /** Quoted table that indexes the ids of several references by `target` and `id`; null for other fields. */
  links: string | null;
  /** The bounds of the field's files; null for other types. Values of such a field are stored as JSON. */
  file: FileField | null;
}

/** A field of files. */
export interface FileField {
  bucket: string;
  /** The bytes that one file may have; null: as many as the bucket allows. */
  maxBytes: number | null;
  /** Media types, or their groups such as `image/*`; null: any. */
  types: readonly string[] | null;
  /** The number of files that the field may have; null: its value is one file or null. */
  many: number | null;
}

export type FileColumn = Column & { file: FileField };

/** Returns the most ids that a field of several references takes. */
export const idsMax = ({ field }: Pick<Column, "field">): number => field?.max ?? IDS_DEFAULT;

/** An index in the file. */
export interface TableIndex {
  name: string;
  columns: readonly string[];
  isUnique: boolean;
}

/** A reference from a column to a table of the namespace, or of another one. */
export interface ReferenceEdge {
  from: TableModel;
  column: Column;
  to: TableModel;
  toColumn: Column;
  onDelete: "restrict" | "cascade" | "set null" | "remove";
  /** Whether callers who may not read the referenced record may refer to it. */
  mayBeHidden: boolean;
}

/** A view: the result of SQL over the tables of its namespace. */
export interface View {
  /** The tables whose changes are told to subscribers; none: nobody can subscribe. */
  live: readonly string[];
}

/** Description of the vectors that the records of a table get. */
export interface EmbeddingModel extends Pick<Embedding, "with"> {
  fields: readonly string[];
  /** Vectors of different keys cannot be compared. */
  key: string;
  /** Texts that the function gets at once. */
  batch: number;
  /** Quoted name of the table of vectors, by row id. */
  vectors: string;
  /** Quoted name of the table of the records that wait for a vector. */
  waiting: string;
}

/** A table, compiled at start from the checked config. */
export interface TableModel {
  namespace: string;
  name: string;
  config: TableConfig;
  /** Whether the table is schemaless: one JSON document next to id, createdAt and updatedAt. */
  isSchemaless: boolean;
  /** Fields that may hold lists and objects; null for any. */
  jsonFields: readonly string[] | null;
  /** Columns in the order of a record: id, fields, createdAt, updatedAt. */
  columns: readonly Column[];
  byName: ReadonlyMap<string, Column>;
  id: Column;
  /** Names of the fields of several references. */
  several: readonly string[];
  /** Names of the fields that only service keys and the server may change. */
  fixed: readonly string[];
  /** Names of the fields that hold instants. */
  datetimes: readonly string[];
  /** The columns of fields of files. */
  files: readonly FileColumn[];
  indexes: readonly TableIndex[];
  /** Fields that each `check` compares. */
  checks: readonly ReadonlySet<string>[];
  sql: string;
  /** Column list of a SELECT. */
  selectList: string;
  hasCreatedAt: boolean;
  hasUpdatedAt: boolean;
  fts: { fields: readonly string[]; tokenize: "unicode61" | "trigram" | "porter"; sql: string } | null;
  /** The vectors of its records; null: they get none. */
  embed: EmbeddingModel | null;
  /** The tables of the namespace by name, this one included. */
  siblings: ReadonlyMap<string, TableModel>;
  /** References from this table to others of its file. */
  outgoing: ReferenceEdge[];
  incoming: ReferenceEdge[];
  /** References from this table to tables of other namespaces, which have other files. */
  far: ReferenceEdge[];
  /** Whether tables of other namespaces refer to it: its deletions are logged. */
  isLogged: boolean;
  /** The view of which these are the records; null for tables. */
  view: View | null;
  /** The text before each SELECT: it says what the name of a view stands for. Empty for tables. */
  source: string;
  /** Whether it is the table of users. Its `email` is the address that everybody may see. */
  isUsers: boolean;
  /** The table of users as the server sees it, with all addresses; null for other tables. */
  full: TableModel | null;
}

/** Column with the fields of a schemaless record. No field can have this name: field names do not begin with `_platform`. */
export const DOCUMENT_COLUMN = "_platform_document";

/**
 * Columns of the table of users beside those of its fields: the address, whoever may see it, and the number of the account, which tells
 * accounts apart that have had one id after each other.
 */
export const ADDRESS_COLUMN = "_platform_address";
export const BIRTH_COLUMN = "_platform_birth";

const SQL_TYPES: Readonly<Record<Column["type"], "TEXT" | "REAL" | "INTEGER">> = {
  string: "TEXT",
  text: "TEXT",
  date: "TEXT",
  datetime: "TEXT",
  geo: "TEXT",
  json: "TEXT",
  references: "TEXT",
  number: "REAL",
  integer: "INTEGER",
  boolean: "INTEGER",
};

/** Whether values of the type are stored as JSON. */
export const isJsonText = (type: FieldType): boolean => ["json", "geo", "references"].includes(type);

type Models = Map<string, TableModel>;

/** Compiles the models of all namespaces and the references between them. */
export function compileNamespaces(databases: Readonly<Record<string, NamespaceConfig>>): Map<string, Models> {
  const all = new Map(Object.entries(databases).map(([name, { tables }]) => [name, compileTables(name, tables)]));
  for (const model of [...all.values()].flatMap((models) => [...models.values()])) {
    for (const { column, reference } of referencesOf(model)) {
      const to = all.get(reference.namespace ?? "")?.get(reference.table);
      if (to === undefined) continue;
      to.isLogged = true;
      const { onDelete, mayBeHidden } = reference;
      model.far.push({ from: model, column, to, toColumn: to.id, onDelete, mayBeHidden });
    }
  }
  return all;
}

/** Compiles the models of one namespace and the references between them. */
export function compileTables(
  namespace: string,
  tables: Readonly<Record<string, TableConfig>>,
): Map<string, TableModel> {
  const models = new Map(Object.entries(tables).map(([name, config]) => [name, compileTable(namespace, name, config)]));
  const stored = new Map([...models].filter(([, { view }]) => view === null));
  for (const model of models.values()) {
    model.siblings = stored;
    joinReferences(model, stored);
    if (model.isUsers) model.full = withAddresses(model);
    const { view } = model.config;
    if (view !== undefined) model.source = viewSource(model.name, view.sql, narrowedTables(stored));
  }
  return models;
}

/** Returns the SELECT of what views see of tables that have other columns too: no address that is not for everybody. */
function narrowedTables(tables: ReadonlyMap<string, TableModel>): ReadonlyMap<string, string> {
  const narrowed = new Map<string, string>();
  for (const { name, sql, columns, isUsers, isSchemaless } of tables.values()) {
    if (!isUsers && !isSchemaless) continue;
    const seen = columns.map((column) =>
      column.name === DOCUMENT_COLUMN ? `${column.sql} AS ${quoteIdentifier(VIEW_DOCUMENT)}` : column.sql,
    );
    narrowed.set(name, `SELECT ${seen.join(", ")} FROM main.${sql}`);
  }
  return narrowed;
}

/** Returns the table of users with all addresses: the same records, by the same indexes. */
function withAddresses(model: TableModel): TableModel {
  const columns = model.columns.map((column) =>
    column.name === "email" ? { ...column, sql: quoteIdentifier(ADDRESS_COLUMN), storedAs: ADDRESS_COLUMN } : column,
  );
  const byName = new Map(columns.map((column) => [column.name, column]));
  return { ...model, columns, byName, selectList: columns.map(({ sql }) => sql).join(", ") };
}

const NO_SIBLINGS: TableModel["siblings"] = new Map();

function compileTable(namespace: string, name: string, config: TableConfig): TableModel {
  const [id, ...others] = compileColumns(name, config);
  const columns = [id, ...others];
  const fts = compileFts(config.fts);
  return {
    namespace,
    name,
    config,
    isSchemaless: config.schema === undefined,
    jsonFields:
      config.schema === undefined ? null : columns.flatMap(({ name, type }) => (isJsonText(type) ? [name] : [])),
    columns,
    byName: new Map(columns.map((column) => [column.name, column])),
    id,
    several: columns.filter(({ links }) => links !== null).map(({ name }) => name),
    files: columns.filter((column): column is FileColumn => column.file !== null),
    fixed: columns.filter(({ field }) => field?.fixed === true).map(({ name }) => name),
    datetimes: columns.filter(({ type }) => type === "datetime").map(({ name }) => name),
    indexes: config.view === undefined ? compileIndexes(name, columns, config) : [],
    checks: checkedFields(columns),
    sql: quoteIdentifier(name),
    selectList: columns.map((column) => column.sql).join(", "),
    hasCreatedAt: config.schema?.["createdAt"] !== false,
    hasUpdatedAt: config.schema?.["updatedAt"] !== false,
    fts: fts === null ? null : { ...fts, sql: quoteIdentifier(`${name}_fts`) },
    embed: config.embed === undefined ? null : compileEmbedding(name, config.embed),
    siblings: NO_SIBLINGS,
    outgoing: [],
    incoming: [],
    far: [],
    isLogged: false,
    view: config.view === undefined ? null : { live: config.view.live },
    source: "",
    isUsers: config.isUsers === true,
    full: null,
  };
}

/** Returns the columns; the first one is the id. */
function compileColumns(table: string, config: TableConfig): [Column, ...Column[]] {
  const auto = (name: string, type: Column["type"]): Column => ({
    name,
    type,
    field: null,
    sql: quoteIdentifier(name),
    isNullable: false,
    isUnique: name === "id",
    geoIndex: null,
    links: null,
    file: null,
  });
  const columns: [Column, ...Column[]] = [auto("id", "string")];
  if (config.schema === undefined) columns.push(auto(DOCUMENT_COLUMN, "json"));
  for (const [name, field] of Object.entries(config.schema ?? {})) {
    if (field === false) continue;
    const type = typeOf(field);
    columns.push({
      name,
      type: type === "file" ? "json" : type,
      field: withStoredDefault(field),
      sql: quoteIdentifier(name),
      isNullable: field.required !== true && field.type !== "references" && field.many === undefined,
      isUnique: field.unique === true,
      geoIndex: type === "geo" ? quoteIdentifier(geoIndexName(table, name)) : null,
      links: field.type === "references" ? quoteIdentifier(linksName(table, name)) : null,
      file: fileFieldOf(field),
    });
  }
  for (const name of ["createdAt", "updatedAt"]) {
    // The field of a view may have this name.
    if (config.schema?.[name] === undefined) columns.push(auto(name, "datetime"));
  }
  return columns;
}

/** Returns the field with its default as it is stored, which for an instant is another text than the config may have. */
function withStoredDefault(field: Field): Field {
  if (typeOf(field) !== "datetime" || typeof field.default !== "string") return field;
  return { ...field, default: instantOf(field.default) ?? field.default };
}

function fileFieldOf({ type, bucket, max, types, many }: Field): FileField | null {
  if (type !== "file" || bucket === undefined) return null;
  return { bucket, maxBytes: max ?? null, types: types ?? null, many: many ?? null };
}

/** Returns the columns of an index. One that is not unique ends with the id, as every sort does, so that it can serve a sort. */
const indexColumns = (index: Index): readonly string[] =>
  index.unique === true || index.fields.includes("id") ? index.fields : [...index.fields, "id"];

/**
 * Returns the declared indexes, and one for each reference that is not the first field of one: deletions search for referring
 * records.
 */
function indexesOf(columns: readonly Column[], config: TableConfig): Index[] {
  const declared = config.indexes ?? [];
  const first = new Set(declared.map(({ fields }) => fields[0]));
  const references = columns.filter(
    ({ name, field, isUnique, links }) =>
      field?.references !== undefined && links === null && !isUnique && !first.has(name),
  );
  return [...declared, ...references.map(({ name }) => ({ fields: [name] }))];
}

function compileIndexes(table: string, columns: readonly Column[], config: TableConfig): TableIndex[] {
  const declare = (names: readonly string[], isUnique: boolean): TableIndex => ({
    name: indexName(table, names, { isUnique }),
    columns: names,
    isUnique,
  });
  const unique = columns.filter(({ name, isUnique }) => isUnique && name !== "id").map(({ name }) => [name]);
  return [
    { name: primaryKeyIndexName(table), columns: ["id"], isUnique: true },
    ...unique.map((names) => declare(names, true)),
    ...indexesOf(columns, config).map((index) => declare(indexColumns(index), index.unique === true)),
  ];
}

function compileFts(
  fts: TableConfig["fts"],
): { fields: readonly string[]; tokenize: "unicode61" | "trigram" | "porter" } | null {
  if (fts === undefined) return null;
  const options: FullTextSearch = "fields" in fts ? fts : { fields: fts };
  return { fields: options.fields, tokenize: options.tokenize ?? "unicode61" };
}

function compileEmbedding(table: string, { fields, with: work, model, batch }: Embedding): EmbeddingModel {
  const made = JSON.stringify(model === undefined ? { fields, code: String(work) } : { fields, model });
  return {
    fields,
    with: work,
    key: new Bun.CryptoHasher("sha256").update(made).digest("hex"),
    batch: batch ?? EMBEDDED_AT_ONCE_DEFAULT,
    vectors: quoteIdentifier(embeddedName(table)),
    waiting: quoteIdentifier(unembeddedName(table)),
  };
}

const referencesOf = ({ columns }: TableModel) =>
  columns.flatMap((column) => {
    const reference = column.field === null ? null : referenceOf(column.field);
    return reference === null ? [] : [{ column, reference }];
  });

function joinReferences(model: TableModel, models: ReadonlyMap<string, TableModel>): void {
  for (const { column, reference } of referencesOf(model)) {
    if (reference.namespace !== null) continue;
    const { onDelete, mayBeHidden } = reference;
    const to = models.get(reference.table);
    const toColumn = to?.byName.get(reference.column);
    if (to === undefined || toColumn === undefined) continue;
    const edge = { from: model, column, to, toColumn, onDelete, mayBeHidden };
    model.outgoing.push(edge);
    if (model.view === null) to.incoming.push(edge);
  }
}

const ACCOUNT_COLUMNS: readonly DeclaredColumn[] = [
  { name: ADDRESS_COLUMN, type: "TEXT", notNull: false, unique: false, check: null, references: null, values: null },
  { name: BIRTH_COLUMN, type: "INTEGER", notNull: false, unique: false, check: null, references: null, values: null },
];

/** Returns the declaration that the file has to match. */
export function declareTable(model: TableModel): DeclaredTable {
  const columns = model.columns.map((column) => declareColumn(model, column));
  return {
    name: model.name,
    kind: model.isSchemaless ? "schemaless" : "schema",
    columnKinds: Object.fromEntries(model.columns.map((column) => [column.name, column.type])),
    columns: model.isUsers ? [...columns, ...ACCOUNT_COLUMNS] : columns,
    indexes: indexesOf(model.columns, model.config).map((index) => ({
      fields: [...indexColumns(index)],
      unique: index.unique === true,
    })),
    fts: model.fts === null ? null : { fields: [...model.fts.fields], tokenize: model.fts.tokenize },
    ...(model.embed === null ? {} : { embed: { fields: [...model.embed.fields], key: model.embed.key } }),
    migrations: [...(model.config.migrations ?? [])],
    ...(model.isLogged ? { isLogged: true } : {}),
  };
}

function declareColumn(model: TableModel, column: Column): DeclaredColumn {
  const edge = model.outgoing.find((outgoing) => outgoing.column === column);
  // Stored records get no file when a field is added.
  const isList = column.links !== null || (column.file?.many ?? null) !== null;
  const fallback = isList ? [] : column.field?.default;
  const onDelete = { restrict: "RESTRICT", cascade: "CASCADE", "set null": "SET NULL" } as const;
  return {
    name: column.name,
    type: SQL_TYPES[column.type],
    notNull: !column.isNullable,
    unique: column.isUnique && column.name !== "id",
    check: column.field?.check ?? null,
    references:
      edge === undefined || edge.onDelete === "remove" || column.links !== null
        ? null
        : { table: edge.to.name, column: edge.toColumn.name, onDelete: onDelete[edge.onDelete] },
    ...(column.links === null ? {} : { linksTo: edge?.to.name ?? null }),
    values: declareValues(column),
    ...(fallback === undefined || fallback === null ? {} : { default: encodeDefault(column, fallback) }),
  };
}

/** Returns what the validator demands of the field's values, for comparison with stored ones. */
function declareValues(column: Column): DeclaredValues | null {
  const { field, type } = column;
  if (field === null) return null;
  if (type === "references") {
    const required = field.required === true ? { minItems: 1 } : {};
    return { schema: { ...required, maxItems: idsMax(column) }, pattern: null, form: "ids" };
  }
  const form = type === "date" || type === "datetime" || type === "geo" || type === "boolean" ? type : null;
  if (field.type === "file") return null;
  const { min, max, pattern, enum: choices, validate } = field;
  if (validate === "new" || [min, max, pattern, choices].every((one) => one === undefined)) {
    return form === null ? null : { schema: {}, pattern: null, form };
  }
  const isText = type === "string" || type === "text";
  const schema: DeclaredValues["schema"] = {
    ...(choices === undefined ? {} : { enum: [...choices] }),
    ...(min === undefined ? {} : { [isText ? "minLength" : "minimum"]: min }),
    ...(max === undefined ? {} : { [isText ? "maxLength" : "maximum"]: max }),
  };
  const expression = typeof pattern === "string" ? { source: pattern, flags: "u" } : pattern;
  return {
    schema,
    pattern: expression === undefined ? null : { source: expression.source, flags: expression.flags },
    form,
  };
}

function encodeDefault(column: Column, value: NonNullable<Field["default"]>): string | number {
  if (isJsonText(column.type)) return JSON.stringify(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" ? value : String(value);
}

/** Returns the declared namespaces in the form that a rehearsal compares with files. */
export function declaredNamespaces(
  databases: Readonly<Record<string, NamespaceConfig>>,
): RehearsalJob["namespaces"][number][] {
  const compiled = compileNamespaces(databases);
  return Object.entries(databases).map(([name, config]) => {
    const models = [...(compiled.get(name)?.values() ?? [])];
    const users = models.find(({ isUsers }) => isUsers);
    return {
      name,
      isDynamic: config.instance === true,
      tables: models.filter(({ view }) => view === null).map(declareTable),
      ...(users === undefined ? {} : { first: { table: users.name, column: BIRTH_COLUMN } }),
    };
  });
}

/** Pattern of an instance id, which cannot contain a path, and cannot be `tables`, a segment of the endpoints' paths. */
const INSTANCE_ID = /^(?!tables$)[A-Za-z0-9_-]{1,128}$/;

export const isInstanceId = (id: string): boolean => INSTANCE_ID.test(id);
