import { AppError, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { matches } from "../../../../kernel/records/filter-match.ts";
import { valueAt } from "../../../../kernel/records/value-path.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type Condition, isLinked, isListCondition, type ParsedFilter } from "../filters/filter.ts";
import { ownConditionsIn } from "../filters/own-parts.ts";
import { ANY_CASE_COST, CONDITION_COST_MAX, LISTED_VALUE_COST, SAME_COST } from "../limits.ts";
import { OPERATORS } from "../model/operators.ts";
import { roughBytes } from "../model/record-size.ts";
import { settledNow } from "../query/related-now.ts";
import type { WriteContext } from "./write-context.ts";

/**
 * Checks the condition on a record. Errors: 412 for a record that does not meet it; 413 when evaluating it would take too long.
 * [TB303] [TB611]
 */
export function assertMeets(context: WriteContext, filter: ParsedFilter, record: TableRecord): void {
  context.conditionCost += costOf(filter, record);
  if (context.conditionCost > CONDITION_COST_MAX) {
    throw tooLarge("The conditions of `if` compare too much text or JSON; compare shorter fields, or a version");
  }
  if (!matches(settledNow(context.tx, filter, record, context.related), record)) {
    throw new AppError(412, "The stored record does not meet the condition of `if`");
  }
}

/**
 * Returns the cost of evaluating the filter's own conditions on this record, in the unit of CONDITION_COST_MAX; stops counting above
 * that.
 */
export function costOf(filter: ParsedFilter, record: TableRecord): number {
  let cost = 0;
  for (const condition of ownConditionsIn(filter)) {
    cost += costOfOne(condition, valueAt(record, condition.field) ?? null);
    if (cost > CONDITION_COST_MAX) break;
  }
  return cost;
}

/** Returns the characters that a condition examines, each counted as often as it is examined. */
function costOfOne(condition: Condition, value: JsonValue): number {
  if (isListCondition(condition)) return costOfList(condition.value, value);
  // Looked up in a set.
  if (isLinked(condition)) return roughBytes(value) + roughBytes(condition.value as JsonValue);
  const { operator } = condition;
  const wanted = condition.value as JsonValue; // Only those above have read-only lists.
  const { isSearch, isAnyCase } = OPERATORS[operator];
  if (typeof value !== "object" || value === null) {
    const length = typeof value === "string" ? value.length : 0;
    const perCharacter = isAnyCase ? ANY_CASE_COST : 1;
    if (isSearch) return 1 + length * perCharacter;
    // Compared natively, or up to the length of the shorter one.
    return 1 + (typeof wanted === "string" ? Math.min(length, wanted.length) * perCharacter : 0);
  }
  const elements = Array.isArray(value) && isNested(wanted) ? value.length : 0;
  const perCharacter = isSearch && isAnyCase ? ANY_CASE_COST : 1;
  return roughBytes(value) * perCharacter + elements * roughBytes(wanted);
}

function costOfList(wanted: readonly JsonValue[], value: JsonValue): number {
  // Objects and arrays are compared as their JSON, which is serialised for each comparison.
  if (isNested(value)) return roughBytes(value) * (1 + wanted.filter(isNested).length) + wanted.length;
  return wanted.length * (LISTED_VALUE_COST + (typeof value === "string" ? value.length * SAME_COST : 0));
}

const isNested = (value: JsonValue): boolean => typeof value === "object" && value !== null;
