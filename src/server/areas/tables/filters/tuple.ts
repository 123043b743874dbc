import { badField } from "../../../../kernel/errors.ts";
import { illFormed } from "../../../../kernel/fields.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { GeoBox, GeoCircle } from "../../../../kernel/records/geo.ts";
import { instantOf, isIsoDate } from "../../../../kernel/time/iso-datetime.ts";
import type { FilterOperator } from "../../../config/types.ts";
import { IN_VALUES_MAX, NEEDLE_LENGTH_MAX, SHOWN_LENGTH_MAX } from "../limits.ts";
import { type FieldPath, resolveField } from "../model/field-path.ts";
import type { TableModel } from "../model/model.ts";
import {
  type AreaOperator,
  type IdsOperator,
  isAreaOperator,
  isFilterOperator,
  isIdsOperator,
  isListOperator,
  isOfReferences,
  type ListOperator,
  OPERATOR_NAMES,
  OPERATORS,
} from "../model/operators.ts";
import { areaIn } from "./areas.ts";

export interface ListCondition {
  field: FieldPath;
  operator: ListOperator;
  value: readonly JsonValue[];
}

export interface AreaCondition {
  field: FieldPath;
  operator: AreaOperator;
  value: GeoCircle | GeoBox;
}

/** A condition on several references, with an id, or a list of ids of which none is there twice. */
export type LinkedCondition =
  | { field: FieldPath; operator: "has"; value: JsonValue }
  | { field: FieldPath; operator: IdsOperator; value: readonly JsonValue[] };

/** A condition validated against its table. */
export type Condition =
  | {
      field: FieldPath;
      operator: Exclude<FilterOperator, ListOperator | AreaOperator | LinkedCondition["operator"]>;
      value: JsonValue;
    }
  | AreaCondition
  | ListCondition
  | LinkedCondition;

/** Parses `[field, operator, value]`. Errors: 400 for an unknown field or operator, or a value of the wrong type. */
export function parseTuple(model: TableModel, tuple: unknown, name: string): Condition {
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
  if (isAreaOperator(operator)) return { field, operator, value: areaIn(field, operator, value, name) };
  refuseOthers(field, operator, name);
  if (isIdsOperator(operator)) return { field, operator, value: idsOf(value, `${name}: ${operator}`, name) };
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
    return { field, operator, value: value.map((one) => storedValue(field, "==", one)) };
  }
  checkValue(field, operator, value, name);
  return { field, operator, value: storedValue(field, operator, value) };
}

const isInstant = (field: FieldPath, operator: FilterOperator): boolean =>
  field.column.type === "datetime" && OPERATORS[operator].takes !== "text" && OPERATORS[operator].takes !== "part";

/** Returns the value in the form in which values of the field are stored. */
const storedValue = (field: FieldPath, operator: FilterOperator, value: JsonValue): JsonValue =>
  typeof value === "string" && isInstant(field, operator) ? instantOf(value) : value;

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
  if (takes === "id" && typeof value !== "string") wrong("an id");
  if (field.isJson) {
    const isOrdered = typeof value === "string" || typeof value === "number";
    if (!isOrdered && takes === "ordered") wrong("text or a number");
    return;
  }
  if (field.column.type === "geo") wrong("null alone; points are found by within and inBox");
  const wanted = field.column.type === "boolean" ? "boolean" : isNumeric(field) ? "number" : "string";
  if (isText && wanted !== "string") wrong("a text field");
  if (typeof value !== wanted) wrong(wanted === "string" ? "text" : `a ${wanted}`);
  if (field.column.type === "date" && !isText && !isIsoDate(String(value))) {
    const message = `${name}: ${field.name} ${operator} takes a date such as 2024-05-06, got ${shown(value)}`;
    throw badField(name, "invalid_value", message);
  }
  if (isInstant(field, operator) && instantOf(String(value)) === null) {
    const wantedTime = "a date and time with an offset, such as 2024-05-06T04:00:00.000Z";
    throw badField(
      name,
      "invalid_value",
      `${name}: ${field.name} ${operator} takes ${wantedTime}, got ${shown(value)}`,
    );
  }
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}

const isNumeric = (field: FieldPath): boolean => field.column.type === "number" || field.column.type === "integer";

// Conditions on several references.

/** Refuses operators that several references do not take, and theirs for other fields. Errors: 400. [TB653] */
function refuseOthers({ name: field, column }: FieldPath, operator: FilterOperator, name: string): void {
  if ((column.links !== null) === isOfReferences(operator)) return;
  const has = "has, hasAny and hasAll";
  const message = column.links === null ? `${has} are for several references` : `${has} compare several references`;
  throw badField(name, "invalid_type", `${name}: ${field} cannot be compared by ${operator}: ${message}`);
}

/** Returns the ids of a condition, each once. Errors: 400. */
function idsOf(value: JsonValue, what: string, name: string): readonly JsonValue[] {
  if (!Array.isArray(value)) throw badField(name, "invalid_type", `${what} takes an array of ids`);
  if (value.length > IN_VALUES_MAX) {
    throw badField(name, "too_long", `${what} takes at most ${IN_VALUES_MAX} ids, got ${value.length}`);
  }
  for (const one of value) {
    if (typeof one !== "string") throw badField(name, "invalid_type", `${what} takes ids, which are texts`);
    if (!one.isWellFormed()) throw badField(name, "invalid_value", illFormed(name));
  }
  return [...new Set(value)];
}
