import { badField } from "../../../../kernel/errors.ts";
import { illFormed } from "../../../../kernel/fields.ts";
import { jsonCopy } from "../../../../kernel/json/copy.ts";
import { isTextWithinDepth, type JsonValue } from "../../../../kernel/json/json.ts";
import { JSON_DEPTH_MAX } from "../../../../kernel/limits.ts";
import type { FilterOperator } from "../../../config/types.ts";
import { IN_VALUES_MAX, NEEDLE_LENGTH_MAX, SHOWN_LENGTH_MAX } from "../limits.ts";
import { type FieldPath, resolveField } from "../model/field-path.ts";
import type { TableModel } from "../model/model.ts";
import { isFilterOperator, isListOperator, type ListOperator, OPERATOR_NAMES, OPERATORS } from "../model/operators.ts";

interface ListCondition {
  field: FieldPath;
  operator: ListOperator;
  value: readonly JsonValue[];
}

/** A condition validated against its table. */
export type Condition =
  | { field: FieldPath; operator: Exclude<FilterOperator, ListOperator>; value: JsonValue }
  | ListCondition;

export const isListCondition = (condition: Condition): condition is ListCondition => isListOperator(condition.operator);

/** Validated filter: all of `all` must match, and one of `any` unless it is empty. */
export interface ParsedFilter {
  all: readonly Condition[];
  any: readonly Condition[];
}

export const NO_FILTER: ParsedFilter = { all: [], any: [] };

/**
 * Parses the conditions of a body or a rule. `name` is the parameter named in errors. Errors: 400 naming the condition with an
 * unknown field or operator, or a value of the wrong type; 400 for too many. [TB16]
 */
export function parseConditions(
  model: TableModel,
  value: unknown,
  options: { name: string; conditionsMax: number },
): Condition[] {
  const { name, conditionsMax } = options;
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value))
    throw badField(name, "invalid_type", `${name} must be an array of [field, operator, value]`);
  if (value.length > conditionsMax) {
    throw badField(name, "too_long", `${name} must have at most ${conditionsMax} conditions, got ${value.length}`);
  }
  return value.map((tuple: unknown, index) => parseTuple(model, tuple, `${name}.${index}`));
}

/**
 * Returns the conditions with copies of their values: a rule may change its arrays for the next caller while a right that it
 * granted is in use. Undefined values of a list are left out: they match nothing, and as JSON they would be null. Errors: 400 for
 * other values that JSON does not have.
 */
export const withOwnValues = (conditions: readonly Condition[]): Condition[] =>
  conditions.map((condition): Condition => {
    if (!isListCondition(condition)) return { ...condition, value: jsonCopy(condition.value) };
    return { ...condition, value: condition.value.filter((one) => one !== undefined).map((one) => jsonCopy(one)) };
  });

/** Parses the text of a query parameter, as `parseConditions` does. */
export function parseFilterText(
  model: TableModel,
  text: string | null,
  options: { name: string; conditionsMax: number },
): Condition[] {
  if (text === null || text === "") return [];
  if (!isTextWithinDepth(text)) {
    throw badField(options.name, "invalid_value", `${options.name} nests deeper than ${JSON_DEPTH_MAX} levels`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badField(options.name, "invalid_value", `${options.name} is not valid JSON`);
  }
  return parseConditions(model, value, options);
}

function parseTuple(model: TableModel, tuple: unknown, name: string): Condition {
  if (!Array.isArray(tuple) || tuple.length !== 3 || typeof tuple[0] !== "string" || typeof tuple[1] !== "string") {
    throw badField(name, "invalid_value", `${name} must be [field, operator, value]`);
  }
  const [fieldName, operator]: [string, string, ...unknown[]] = [tuple[0], tuple[1]];
  // From JSON, or from a rule's code: a value that JSON does not have fails the type checks below.
  const value = tuple[2] as JsonValue | undefined;
  const field = resolveField(model, fieldName);
  if (field === null) throw badField(name, "unknown_field", `${name}: ${fieldName} is not a field of ${model.name}`);
  if (!isFilterOperator(operator)) {
    throw badField(name, "invalid_value", `${name}: "${operator}" is not one of ${OPERATOR_NAMES}`);
  }
  if (value === undefined) throw badField(name, "invalid_value", `${name} must be [field, operator, value]`);
  if (isListOperator(operator)) {
    if (!Array.isArray(value)) throw badField(name, "invalid_type", `${name}: ${operator} takes an array of values`);
    if (value.length > IN_VALUES_MAX) {
      throw badField(
        name,
        "too_long",
        `${name}: ${operator} takes at most ${IN_VALUES_MAX} values, got ${value.length}`,
      );
    }
    for (const one of value) if (one !== null) checkValue(field, "==", one, name);
    return { field, operator, value };
  }
  checkValue(field, operator, value, name);
  return { field, operator, value };
}

function checkValue(field: FieldPath, operator: FilterOperator, value: JsonValue, name: string): void {
  const wrong = (wanted: string): never => {
    throw badField(name, "invalid_type", `${name}: ${field.name} ${operator} takes ${wanted}, got ${shown(value)}`);
  };
  if (typeof value === "string" && !value.isWellFormed()) throw badField(name, "invalid_value", illFormed(name));
  // From a rule's code, or from text such as 1e999. As JSON, which identifies filters, these would all be null.
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw badField(name, "invalid_value", `${name}: ${field.name} ${operator} takes a finite number, got ${value}`);
  }
  const { takes } = OPERATORS[operator];
  const isText = takes === "text" || takes === "part";
  if (isText && typeof value === "string" && value.length > NEEDLE_LENGTH_MAX) {
    const message = `${name}: ${operator} takes at most ${NEEDLE_LENGTH_MAX} characters, got ${value.length}`;
    throw badField(name, "too_long", message);
  }
  if (value === null) {
    if (takes !== "value" && !(takes === "part" && field.isJson)) wrong("a value that is not null");
    return;
  }
  if (takes === "text" && typeof value !== "string") wrong("text");
  if (field.isJson) {
    const isOrdered = typeof value === "string" || typeof value === "number";
    if (!isOrdered && takes === "ordered") wrong("text or a number");
    return;
  }
  const wanted = field.column.type === "boolean" ? "boolean" : isNumeric(field) ? "number" : "string";
  if (isText && wanted !== "string") wrong("a text field");
  if (typeof value !== wanted) wrong(wanted === "string" ? "text" : `a ${wanted}`);
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}

const isNumeric = (field: FieldPath): boolean => field.column.type === "number" || field.column.type === "integer";
