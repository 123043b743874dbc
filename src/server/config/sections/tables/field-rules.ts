import { POINT_EXAMPLE, pointFault } from "../../../../kernel/records/geo-values.ts";
import { authoredParser } from "../../../../kernel/schema/authored-parser.ts";
import { instantOf, isIsoDate } from "../../../../kernel/time/iso-datetime.ts";
import { describe, type Report } from "../../shape/report.ts";
import { type Field, type FieldType, IDS_MAX, typeOf } from "./fields.ts";

const TEXTUAL: ReadonlySet<string> = new Set(["string", "text"]);
const NUMERIC: ReadonlySet<string> = new Set(["number", "integer"]);

const BOUNDS = ["enum", "min", "max", "pattern"] as const;

/** Checks the relations between the members of a field. */
export function checkField(field: Field, report: Report): void {
  const before = report.problems.length;
  if (field.type === undefined && field.references === undefined) report.at("type").say("is required");
  if (field.schema !== undefined && typeOf(field) !== "json") {
    report.at("schema").say(`is for json, not for ${typeOf(field)}`);
  }
  if (field.type === "references") {
    checkSeveral(field, report);
    return;
  }
  if (field.type === "file") {
    checkFile(field, report);
    return;
  }
  for (const name of ["bucket", "types", "many"] as const) {
    if (field[name] !== undefined) report.at(name).say(`is for file, not for ${typeOf(field)}`);
  }
  checkBounds(field, report);
  checkChoices(field, report);
  if (field.pattern !== undefined && !TEXTUAL.has(typeOf(field))) {
    report.at("pattern").say(`is for string and text, not for ${typeOf(field)}`);
  }
  if (field.unique === true && typeOf(field) === "geo") report.at("unique").say("is not for geo");
  if (field.onUpdate !== undefined && typeOf(field) !== "datetime") {
    report.at("onUpdate").say(`is for datetime, not for ${typeOf(field)}`);
  }
  if (field.validate !== undefined && BOUNDS.every((name) => field[name] === undefined)) {
    report.at("validate").say(`is for fields with ${BOUNDS.join(", ")}`);
  }
  // A default can only be checked against a field without other problems.
  if (field.default !== undefined && report.problems.length === before) checkDefault(field, report.at("default"));
}

/** Checks a field of several references. */
function checkSeveral(field: Field, report: Report): void {
  if (field.references === undefined) report.at("references").say("is required: the table whose ids the field has");
  for (const name of ["default", "unique", "min", "pattern", "enum", "validate", "onUpdate"] as const) {
    if (field[name] !== undefined) report.at(name).say("is not for references, which are [] without any");
  }
  const { max } = field;
  if (max === undefined || (Number.isSafeInteger(max) && max >= 1 && max <= IDS_MAX)) return;
  report.at("max").say(`counts ids and must be a whole number from 1 to ${IDS_MAX}, got ${max}`);
}

/** The members of a field of files. */
const OF_FILES: readonly string[] = ["type", "required", "fixed", "max", "bucket", "types", "many"];

function checkFile(field: Field, report: Report): void {
  if (field.bucket === undefined) report.at("bucket").say("is required for a file");
  if (field.max !== undefined && !(Number.isSafeInteger(field.max) && field.max >= 1)) {
    report.at("max").say(`counts bytes and must be a whole number, 1 or more, got ${field.max}`);
  }
  for (const name of Object.keys(field)) {
    if (!OF_FILES.includes(name)) report.at(name).say("is not for file");
  }
}

function checkBounds(field: Field, report: Report): void {
  for (const name of ["min", "max"] as const) {
    const bound = field[name];
    if (bound === undefined) continue;
    const at = report.at(name);
    if (TEXTUAL.has(typeOf(field))) {
      const isLength = Number.isSafeInteger(bound) && bound >= 0;
      if (!isLength) at.say(`counts characters and must be a whole number, 0 or more, got ${bound}`);
    } else if (!NUMERIC.has(typeOf(field))) {
      at.say(`is for string, text, number and integer, not for ${typeOf(field)}`);
    }
  }
  if (field.min !== undefined && field.max !== undefined && field.min > field.max) {
    report.at("min").say(`must not be above max, got ${field.min} and ${field.max}`);
  }
}

function checkChoices(field: Field, report: Report): void {
  if (field.enum === undefined) return;
  const at = report.at("enum");
  const wanted = TEXTUAL.has(typeOf(field)) ? "string" : NUMERIC.has(typeOf(field)) ? "number" : null;
  if (wanted === null) {
    at.say(`is for string, text, number and integer, not for ${typeOf(field)}`);
    return;
  }
  for (const [index, value] of field.enum.entries()) {
    if (typeof value !== wanted) at.at(index).say(`must be a ${wanted}, like the field, got ${describe(value)}`);
    else if (typeOf(field) === "integer" && !Number.isSafeInteger(value)) at.at(index).say("must be a whole number");
    if (field.enum.indexOf(value) !== index) at.at(index).say(`is listed twice: ${describe(value)}`);
  }
}

function checkDefault(field: Field, report: Report): void {
  const { default: value } = field;
  if (value === undefined) return;
  if (value === null) {
    if (field.required === true) report.say("must not be null, since the field is required");
    return;
  }
  const wanted = wrongType(typeOf(field), value);
  if (wanted !== null) {
    report.say(`must be ${wanted}, like the field, got ${describe(value)}`);
    return;
  }
  if (field.schema !== undefined) {
    const problems = authoredParser(field.schema, { name: "default", member: "a member of it" }).problemsOf(
      value,
      "default",
    );
    const [problem] = Object.values(problems ?? {});
    if (problem !== undefined) report.say(`must match the field's schema: ${problem.message}`);
  }
  if (field.enum !== undefined && !field.enum.some((allowed) => allowed === value)) {
    report.say(`must be one of ${field.enum.join(", ")}, got ${describe(value)}`);
  }
  const size = typeof value === "string" ? [...value].length : typeof value === "number" ? value : null;
  const unit = typeof value === "string" ? " characters" : "";
  if (size !== null && field.min !== undefined && size < field.min) {
    report.say(`must be at least the field's min of ${field.min}${unit}, got ${size}`);
  }
  if (size !== null && field.max !== undefined && size > field.max) {
    report.say(`must be at most the field's max of ${field.max}${unit}, got ${size}`);
  }
  if (typeof value === "string" && field.pattern !== undefined && !matches(field.pattern, value)) {
    report.say(`must match the field's pattern ${String(field.pattern)}, got ${describe(value)}`);
  }
}

function matches(expression: string | RegExp, value: string): boolean {
  // Creates a new expression each time: a global or sticky one keeps its last index.
  const { source, flags } = typeof expression === "string" ? new RegExp(expression, "u") : expression;
  return new RegExp(source, flags).test(value);
}

/** Describes what a value of this type must be; null when the value is of the type. */
function wrongType(type: FieldType, value: unknown): string | null {
  switch (type) {
    case "string":
    case "text":
      return typeof value === "string" ? null : "a string";
    case "number":
      return typeof value === "number" ? null : "a number";
    case "integer":
      return Number.isSafeInteger(value) ? null : "a whole number";
    case "boolean":
      return typeof value === "boolean" ? null : "true or false";
    case "datetime":
      if (typeof value === "string" && instantOf(value) !== null) return null;
      return "a date and time with an offset, such as 2024-05-06T04:00:00.000Z";
    case "date":
      return typeof value === "string" && isIsoDate(value) ? null : "a date such as 2024-05-06";
    case "geo":
      return pointFault(value) === null ? null : `a point such as ${POINT_EXAMPLE}`;
    case "json":
    case "references":
    case "file": // Has no default.
      return null;
    default:
      return type satisfies never;
  }
}
