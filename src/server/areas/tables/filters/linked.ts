import { badField } from "../../../../kernel/errors.ts";
import { illFormed } from "../../../../kernel/fields.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { FilterOperator } from "../../../config/types.ts";
import { IN_VALUES_MAX } from "../limits.ts";
import type { FieldPath } from "../model/field-path.ts";
import { isOfReferences } from "../model/operators.ts";

// Conditions on several references.

/** Refuses operators that several references do not take, and theirs for other fields. Errors: 400. [TB653] */
export function refuseOthers({ name: field, column }: FieldPath, operator: FilterOperator, name: string): void {
  if ((column.links !== null) === isOfReferences(operator)) return;
  const has = "has, hasAny and hasAll";
  const message = column.links === null ? `${has} are for several references` : `${has} compare several references`;
  throw badField(name, "invalid_type", `${name}: ${field} cannot be compared by ${operator}: ${message}`);
}

/** Returns the ids of a condition, each once. Errors: 400. */
export function idsOf(value: JsonValue, what: string, name: string): readonly JsonValue[] {
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
