import { Compile } from "typebox/schema";
import { Settings } from "typebox/system";
import { badRequest, type FieldCode, type FieldProblem, type FieldProblems } from "../../../../kernel/errors.ts";
import { illFormed, isLonger } from "../../../../kernel/fields.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { pointFault } from "../../../../kernel/records/geo-values.ts";
import { authoredParser } from "../../../../kernel/schema/authored-parser.ts";
import { instantOf, isIsoDate } from "../../../../kernel/time/iso-datetime.ts";
import type { TableRecord } from "../../../config/types.ts";
import { ID_LENGTH_MAX, INDEXED_TEXT_LENGTH_MAX, PATTERN_TEXT_LENGTH_MAX, PROBLEMS_MAX } from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, type FileField, idsMax, type TableModel } from "./model.ts";

const RESERVED_IDS = new Set(["count", "search", "aggregate", "batch", "batch-by-filter"]);
/** Names with a meaning in JavaScript objects, which fields cannot have. */
const FORBIDDEN_NAMES = ["__proto__", "constructor", "prototype", DOCUMENT_COLUMN, ""];
export interface Validator {
  /** Returns the problems of a record to be inserted, with its defaults; null when it is valid. */
  ofRecord(record: TableRecord): FieldProblems | null;
  /** Returns the problems of a subset of fields, none of which is required; null when they are valid. */
  ofChanges(changes: TableRecord): FieldProblems | null;
}

/**
 * Returns the validator of a table. Its schema is compiled for the first record, so that the start of a server does not wait for
 * all tables. [TB21]
 */
export function createValidator(model: TableModel): Validator {
  if (model.isSchemaless) return schemalessValidator(model);
  // By default a compiled schema reports at most 8 errors, but a form may have more.
  Settings.Set({ maxErrors: PROBLEMS_MAX });
  const own = model.columns.filter((column) => column.field !== null);
  const required = own.filter((column) => !column.isNullable).map((column) => column.name);
  const properties = Object.fromEntries(model.columns.map((column) => [column.name, propertySchema(model, column)]));
  const whole = compiledOnce({ type: "object", properties, required, additionalProperties: false });
  const partial = compiledOnce({ type: "object", properties, additionalProperties: false });
  // Checks that JSON Schema lacks, or defines differently.
  const textual = model.columns
    .filter((column) => ["string", "text", "date", "datetime"].includes(column.type))
    .map((column) => ({ column, pattern: patternOf(column) }));
  const several = model.columns.filter(({ links }) => links !== null);

  const typed = model.columns.flatMap(({ name, field }) =>
    field?.schema === undefined
      ? []
      : [{ name, parser: authoredParser(field.schema, { name, member: `a member of ${name}` }) }],
  );
  const points = model.columns.filter((column) => column.type === "geo");

  const check = (compiled: Compiled, record: TableRecord): FieldProblems | null => {
    const problems: FieldProblems = Object.create(null);
    if (!compiled.Check(record)) {
      const known = setAsideUnknown(record, properties, problems);
      collect(compiled.Errors(known)[1], known, problems);
      // A refused record must not pass because no problem was derived from its errors.
      if (Object.keys(problems).length === 0) throw new Error(`${model.name} refused a record without a reason`);
    }
    for (const { column, pattern } of textual) {
      if (problems[column.name] !== undefined) continue;
      const problem = textProblem(column, pattern, record[column.name]);
      if (problem !== null) problems[column.name] = problem;
    }
    for (const { name } of points) {
      const value = record[name] ?? null;
      const fault = value === null || problems[name] !== undefined ? null : pointFault(value);
      if (fault !== null) problems[name] = { code: "invalid_value", message: `${name} ${fault}` };
    }
    for (const { name, parser } of typed) {
      const value = record[name] ?? null;
      if (value !== null && problems[name] === undefined) Object.assign(problems, parser.problemsOf(value, name));
    }
    for (const column of several) {
      const value = record[column.name];
      const problem = value === undefined ? null : idsProblem(column, value);
      if (problem !== null) problems[column.name] = problem;
    }
    return Object.keys(problems).length === 0 ? null : problems;
  };
  return { ofRecord: (record) => check(whole(), record), ofChanges: (changes) => check(partial(), changes) };
}

interface Compiled {
  Check(value: unknown): boolean;
  Errors(value: unknown): [boolean, SchemaError[]];
}

function compiledOnce(schema: object): () => Compiled {
  let compiled: Compiled | null = null;
  return () => {
    compiled ??= Compile(schema);
    return compiled;
  };
}

function schemalessValidator(model: TableModel): Validator {
  const check = (record: TableRecord): FieldProblems | null => {
    const problems: FieldProblems = Object.create(null);
    for (const name of FORBIDDEN_NAMES) {
      if (!Object.hasOwn(record, name)) continue;
      problems[name] = { code: "unknown_field", message: `"${name}" cannot be the name of a field` };
    }
    for (const column of model.columns) {
      if (column.name === DOCUMENT_COLUMN) continue;
      const value = record[column.name];
      if (value !== undefined && typeof value !== "string") {
        problems[column.name] = { code: "invalid_type", message: `${column.name} must be text` };
      }
      const problem = textProblem(column, null, value);
      if (problem !== null) problems[column.name] ??= problem;
    }
    return Object.keys(problems).length === 0 ? null : problems;
  };
  return { ofRecord: check, ofChanges: check };
}

const NOT_NULL = ["object", "array", "string", "number", "boolean"];

function propertySchema(model: TableModel, column: Column): Record<string, unknown> {
  const { field } = column;
  if (column.file !== null) return fileSchema(column, column.file);
  // References have a check of their own.
  if (column.links !== null) return {};
  // What a point must be is checked apart: any fault of it has one code.
  if (column.type === "json" || column.type === "geo") return column.isNullable ? {} : { type: NOT_NULL };
  const isText = column.type !== "number" && column.type !== "integer" && column.type !== "boolean";
  const type = isText ? "string" : column.type;
  const schema: Record<string, unknown> = { type: column.isNullable ? [type, "null"] : type };
  if (column.type === "integer") {
    schema["minimum"] = Number.MIN_SAFE_INTEGER;
    schema["maximum"] = Number.MAX_SAFE_INTEGER;
  }
  if (field?.min !== undefined) schema[isText ? "minLength" : "minimum"] = field.min;
  if (field?.max !== undefined) schema[isText ? "maxLength" : "maximum"] = field.max;
  else if (model.fts?.fields.includes(column.name) === true) schema["maxLength"] = INDEXED_TEXT_LENGTH_MAX;
  if (field?.enum !== undefined) schema["enum"] = column.isNullable ? [...field.enum, null] : [...field.enum];
  return schema;
}

/** The form of the value. What its files may be is checked where they come from. */
function fileSchema({ isNullable, field }: Column, { many }: FileField): Record<string, unknown> {
  if (many === null) return { type: isNullable ? ["object", "null"] : "object" };
  return { type: "array", maxItems: many, ...(field?.required === true ? { minItems: 1 } : {}) };
}

function textProblem(column: Column, pattern: RegExp | null, value: JsonValue | undefined): FieldProblem | null {
  if (typeof value !== "string") return null;
  const { name } = column;
  const invalid = (message: string): FieldProblem => ({ code: "invalid_value", message });
  if (!value.isWellFormed()) return invalid(illFormed(name));
  if (column.type === "datetime" && instantOf(value) === null) return noInstant(name, value);
  if (column.type === "date" && !isIsoDate(value)) {
    return invalid(`${name} must be a date such as 2024-05-06, got ${describe(value)}`);
  }
  if (pattern === null) return null;
  if (value.length > PATTERN_TEXT_LENGTH_MAX) {
    return { code: "too_long", message: `${name} must have at most ${PATTERN_TEXT_LENGTH_MAX} characters` };
  }
  if (!matchesPattern(pattern, value)) {
    return { code: "pattern_mismatch", message: `${name} must match ${pattern.source}` };
  }
  return null;
}

/** Returns the problem of a text that is no instant. [TB681] */
export const noInstant = (name: string, value: string): FieldProblem => ({
  code: "invalid_value",
  message: `${name} must be a date and time with an offset, such as 2024-05-06T04:00:00.000Z, got ${describe(value)}`,
});

/** Returns the problem of several references; null when they are valid ids, within the bound. */
function idsProblem(column: Column, value: JsonValue): FieldProblem | null {
  const { name, field } = column;
  if (!Array.isArray(value)) {
    return { code: "invalid_type", message: `${name} must be an array of ids, got ${describe(value)}` };
  }
  if (value.length === 0 && field?.required === true) {
    return { code: "required", message: `${name} is required and must have an id` };
  }
  if (value.length > idsMax(column)) {
    return { code: "too_long", message: `${name} must have at most ${idsMax(column)} ids, got ${value.length}` };
  }
  const seen = new Set<string>();
  for (const id of value) {
    if (typeof id !== "string") {
      return { code: "invalid_type", message: `${name} must have ids, which are texts, got ${describe(id)}` };
    }
    if (idProblem(id) !== null) return { code: "invalid_value", message: `${name} must have ids, got ${describe(id)}` };
    if (seen.has(id)) return { code: "invalid_value", message: `${name} must have no id twice, got ${describe(id)}` };
    seen.add(id);
  }
  return null;
}

/** Returns the pattern of a field, or null. */
function patternOf({ field }: Column): RegExp | null {
  if (field?.pattern === undefined) return null;
  return typeof field.pattern === "string" ? new RegExp(field.pattern, "u") : field.pattern;
}

function matchesPattern(pattern: RegExp, value: string): boolean {
  // A global or sticky expression keeps its position between tests.
  pattern.lastIndex = 0;
  return pattern.test(value);
}

/** Returns the declared fields of `record` and reports the others. */
function setAsideUnknown(
  record: TableRecord,
  properties: Readonly<Record<string, unknown>>,
  problems: FieldProblems,
): TableRecord {
  const known: TableRecord = {};
  let unknown = 0;
  for (const [name, value] of Object.entries(record)) {
    if (Object.hasOwn(properties, name)) known[name] = value;
    else if (unknown++ < PROBLEMS_MAX) {
      problems[name] = { code: "unknown_field", message: `${name} is not a field of this table` };
    }
  }
  return known;
}

interface SchemaError {
  keyword: string;
  instancePath: string;
  params: object;
}

/** Collects one problem per field: a wrong type, else the first one. */
function collect(errors: readonly SchemaError[], record: TableRecord, problems: FieldProblems): void {
  const sorted = [...errors].sort((a, b) => Number(b.keyword === "type") - Number(a.keyword === "type"));
  for (const error of sorted) {
    const params = error.params as Record<string, unknown>;
    if (error.keyword === "required") {
      for (const name of params["requiredProperties"] as string[]) {
        problems[name] = { code: "required", message: `${name} is required` };
      }
    } else {
      const name = error.instancePath.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
      if (name === "" || problems[name] !== undefined) continue;
      problems[name] = fieldProblem(name, error.keyword, params, record[name] ?? null);
    }
  }
}

function fieldProblem(name: string, keyword: string, params: Record<string, unknown>, value: JsonValue): FieldProblem {
  const got = describe(value);
  const problem = (code: FieldCode, wanted: string): FieldProblem => ({
    code,
    message: `${name} must ${wanted}, got ${got}`,
  });
  const limit = String(params["limit"]);
  switch (keyword) {
    case "type":
      if (value === null) return { code: "required", message: `${name} is required and cannot be null` };
      return problem("invalid_type", `be of type ${[params["type"]].flat()[0]}`);
    case "minLength":
      return problem("too_short", `have at least ${limit} ${limit === "1" ? "character" : "characters"}`);
    case "maxLength":
      return problem("too_long", `have at most ${limit} ${limit === "1" ? "character" : "characters"}`);
    case "minItems":
      return { code: "required", message: `${name} is required: at least one file` };
    case "maxItems":
      return { code: "too_long", message: `${name} must have at most ${limit} ${limit === "1" ? "file" : "files"}` };
    case "minimum":
      return problem("too_small", `be at least ${limit}`);
    case "maximum":
      return problem("too_large", `be at most ${limit}`);
    default:
      return problem("invalid_value", `be one of ${JSON.stringify(params["allowedValues"])}`);
  }
}

function describe(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** Returns the problem of a record id; null when it is valid. [TB22] */
export function idProblem(id: JsonValue): FieldProblem | null {
  if (typeof id !== "string") return { code: "invalid_type", message: "id must be text" };
  if (id === "") return { code: "too_short", message: "id must have at least 1 character" };
  if (isLonger(id, ID_LENGTH_MAX)) {
    return { code: "too_long", message: `id must have at most ${ID_LENGTH_MAX} characters` };
  }
  if (/[\p{Cc}/]/u.test(id) || !id.isWellFormed()) {
    return { code: "invalid_value", message: "id must not hold control characters or a slash" };
  }
  // URLs cannot contain these: they are path segments with a meaning.
  if (id === "." || id === "..") return { code: "invalid_value", message: `"${id}" cannot be an id` };
  if (RESERVED_IDS.has(id)) return { code: "invalid_value", message: `"${id}" is reserved and cannot be an id` };
  return null;
}

/** Throws a 400 with one message for the whole, and each field's own in `data`. */
export function refuse(problems: FieldProblems): never {
  const [first] = Object.values(problems);
  throw badRequest(first?.message ?? "Validation failed", problems);
}

/** Whether a value is a field operator, `{ "$op": … }`. Only changes may contain them. */
export function isOperator(value: JsonValue | undefined): value is JsonObject {
  return isJsonObject(value) && Object.hasOwn(value, "$op");
}
