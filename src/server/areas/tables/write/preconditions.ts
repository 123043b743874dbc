import { AppError, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { matches } from "../../../../kernel/records/filter-match.ts";
import { valueAt } from "../../../../kernel/records/value-path.ts";
import type { TableRecord } from "../../../config/types.ts";
import {
  type Condition,
  conditionsIn,
  isLinked,
  isListCondition,
  type ParsedFilter,
  parseFilter,
  plain,
} from "../filters/filter.ts";
import { filterJson } from "../filters/filter-json.ts";
import { ANY_CASE_COST, CONDITION_COST_MAX, FILTER_CONDITIONS_MAX, LISTED_VALUE_COST, SAME_COST } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { OPERATORS } from "../model/operators.ts";
import { markPlaced } from "../model/problems.ts";
import { roughBytes } from "../model/record-size.ts";
import type { WriteContext } from "./write-context.ts";

/** Condition (`if`) of a change on the stored record. A problem of its form is thrown once the record is found. [TB302] */
export type Precondition = { filter: ParsedFilter } | { fault: unknown };

/** Returns the condition of an operation; null when there is none. `value` is JSON. Errors of its form name `name` in full. */
export function preconditionOf(model: TableModel, value: unknown, name: string): Precondition | null {
  if (value === undefined || value === null) return null;
  const condition = held(() => parseFilter(model, value, optionsFor(name)));
  if ("fault" in condition) markPlaced(condition.fault);
  return condition;
}

/** Returns the condition in a request's query, or null. */
export const preconditionOfText = (model: TableModel, text: string | null): Precondition | null =>
  text === null ? null : held(() => parseFilter(model, filterJson(text, "if"), optionsFor("if")));

const optionsFor = (name: string) => ({ name, conditionsMax: FILTER_CONDITIONS_MAX });

function held(parse: () => ParsedFilter): Precondition {
  try {
    return { filter: parse() };
  } catch (fault) {
    return { fault };
  }
}

/** Returns the filter of a condition; null when there is none. Errors: 400 for its form. */
export function filterOf(condition: Precondition | null): ParsedFilter | null {
  if (condition === null) return null;
  if ("fault" in condition) throw condition.fault;
  return condition.filter;
}

/**
 * Checks the condition on a record. Errors: 412 for a record that does not meet it; 413 when evaluating it would take too long.
 * [TB303]
 */
export function assertMeets(context: WriteContext, filter: ParsedFilter, record: TableRecord): void {
  context.conditionCost += costOf(filter, record);
  if (context.conditionCost > CONDITION_COST_MAX) {
    throw tooLarge("The conditions of `if` compare too much text or JSON; compare shorter fields, or a version");
  }
  if (!matches(plain(filter), record)) throw new AppError(412, "The stored record does not meet the condition of `if`");
}

/** Returns the cost of evaluating the filter on this record, in the unit of CONDITION_COST_MAX; stops counting above that. */
export function costOf(filter: ParsedFilter, record: TableRecord): number {
  let cost = 0;
  for (const condition of conditionsIn(filter)) {
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
