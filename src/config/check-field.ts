import { isIsoDateTime } from "../kernel/iso-datetime.ts";
import { jsonFault } from "../kernel/json.ts";
import { boolean, type Check, describe, list, members, oneOf, type PlainObject, type Report, text } from "./shape.ts";
import type { Field, FieldType } from "./types.ts";

export const FIELD_TYPES: readonly FieldType[] = ["string", "text", "number", "integer", "boolean", "datetime", "json"];
const TEXTUAL: ReadonlySet<string> = new Set(["string", "text"]);
const NUMERIC: ReadonlySet<string> = new Set(["number", "integer"]);

const bound: Check = (value, report) =>
  (typeof value === "number" && Number.isFinite(value)) || report.say(`must be a number, got ${describe(value)}`);

const pattern: Check = (value, report) => {
  if (value instanceof RegExp) return true;
  if (typeof value !== "string") return report.say(`must be a regular expression, got ${describe(value)}`);
  try {
    new RegExp(value, "u");
    return true;
  } catch (cause) {
    return report.say(`is not a regular expression: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
};

const choice: Check = (value, report) =>
  typeof value === "string" ||
  (typeof value === "number" && Number.isFinite(value)) ||
  report.say(`must be a string or a number, got ${describe(value)}`);

const jsonValue: Check = (value, report) => isJson(value) || report.say(`must be a JSON value, got ${describe(value)}`);

function isJson(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || jsonFault(value) !== null) return false;
  return (Array.isArray(value) ? value : Object.values(value)).every(isJson);
}

const references: Check = (value, report) =>
  typeof value === "string"
    ? text(value, report)
    : members({ table: text, column: text, onDelete: oneOf("restrict", "cascade", "set null") }, ["table"])(
        value,
        report,
      );

const fieldShape = members(
  {
    type: oneOf(...FIELD_TYPES),
    required: boolean,
    default: jsonValue,
    unique: boolean,
    min: bound,
    max: bound,
    pattern,
    enum: list(choice),
    references,
    check: text,
    onUpdate: oneOf("now"),
  },
  ["type"],
);

/** One field by itself; what it says of other tables is checked with all tables in view. Decisions 2, Field. */
export const checkField: Check = (value, report) => {
  if (!fieldShape(value, report)) return false;
  // fieldShape has looked at every member.
  const field = value as Field;
  const before = report.problems.length;
  checkBounds(field, report);
  checkChoices(field, report);
  if (field.pattern !== undefined && !TEXTUAL.has(field.type)) {
    report.at("pattern").say(`is for string and text, not for ${field.type}`);
  }
  if (field.onUpdate !== undefined && field.type !== "datetime") {
    report.at("onUpdate").say(`is for datetime, not for ${field.type}`);
  }
  // Only a field that is right by itself can say whether its default is.
  if (field.default !== undefined && report.problems.length === before) checkDefault(field, report.at("default"));
  return report.problems.length === before;
};

function checkBounds(field: Field, report: Report): void {
  for (const name of ["min", "max"] as const) {
    const limit = field[name];
    if (limit === undefined) continue;
    const at = report.at(name);
    if (TEXTUAL.has(field.type)) {
      if (!Number.isSafeInteger(limit) || limit < 0)
        at.say(`counts characters: a whole number, 0 or more, got ${limit}`);
    } else if (!NUMERIC.has(field.type)) {
      at.say(`is for string, text, number and integer, not for ${field.type}`);
    }
  }
  if (field.min !== undefined && field.max !== undefined && field.min > field.max) {
    report.at("min").say(`must not be above max, got ${field.min} and ${field.max}`);
  }
}

function checkChoices(field: Field, report: Report): void {
  if (field.enum === undefined) return;
  const at = report.at("enum");
  const wanted = TEXTUAL.has(field.type) ? "string" : NUMERIC.has(field.type) ? "number" : null;
  if (wanted === null) {
    at.say(`is for string, text, number and integer, not for ${field.type}`);
    return;
  }
  for (const [index, value] of field.enum.entries()) {
    if (typeof value !== wanted) at.at(index).say(`must be a ${wanted} as the field is, got ${describe(value)}`);
    else if (field.type === "integer" && !Number.isSafeInteger(value)) at.at(index).say("must be a whole number");
    if (field.enum.indexOf(value) !== index) at.at(index).say(`is there twice: ${describe(value)}`);
  }
}

function checkDefault(field: Field, report: Report): void {
  const value = field.default;
  if (value === null) {
    if (field.required === true) report.say("must not be null, since the field is required");
    return;
  }
  const wanted = wrongType(field.type, value);
  if (wanted !== null) {
    report.say(`must be ${wanted} as the field is, got ${describe(value)}`);
    return;
  }
  if (field.enum !== undefined && !field.enum.some((allowed) => allowed === value)) {
    report.say(`must be one of ${field.enum.join(", ")}, got ${describe(value)}`);
  }
  const size = typeof value === "string" ? [...value].length : typeof value === "number" ? value : null;
  const unit = typeof value === "string" ? " characters" : "";
  if (size !== null && field.min !== undefined && size < field.min) {
    report.say(`is below the field's min: ${size}${unit}, at least ${field.min}`);
  }
  if (size !== null && field.max !== undefined && size > field.max) {
    report.say(`is above the field's max: ${size}${unit}, at most ${field.max}`);
  }
  if (typeof value === "string" && field.pattern !== undefined && !matches(field.pattern, value)) {
    report.say(`must match the field's pattern ${String(field.pattern)}, got ${describe(value)}`);
  }
}

function matches(expression: string | RegExp, value: string): boolean {
  // A fresh one: a global or sticky expression would remember where it stopped.
  const { source, flags } = typeof expression === "string" ? new RegExp(expression, "u") : expression;
  return new RegExp(source, flags).test(value);
}

/** What a value of this type must be, when it is something else. */
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
      return typeof value === "string" && isIsoDateTime(value) ? null : "an ISO 8601 date and time";
    case "json":
      return null;
    default:
      return type satisfies never;
  }
}

/** A declaration as far as it can be read, for checks of what refers to it. */
export function readableField(value: unknown): { type: string; isUnique: boolean } {
  // Whatever is wrong with it has been said already.
  const field: PlainObject = typeof value === "object" && value !== null ? (value as PlainObject) : {};
  return { type: String(field["type"]), isUnique: field["unique"] === true };
}
