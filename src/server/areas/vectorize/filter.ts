import { badField } from "../../../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { FILTER_CONDITIONS_MAX, FILTER_LENGTH_MAX, FILTER_NAME_LENGTH_MAX, FILTER_VALUES_MAX } from "./limits.ts";
import type { FilterPrimitive, MetadataCondition } from "./types.ts";

const RANGES = { $gt: ">", $gte: ">=", $lt: "<", $lte: "<=" } as const;

/**
 * Parses a filter such as `{ genre: "drama", year: { $gte: 1990 } }`, of which all members must match. Absent or null: no condition.
 * Errors: 400 naming the member.
 */
export function parseMetadataFilter(filter: JsonValue | undefined): MetadataCondition[] {
  if (filter === undefined || filter === null) return [];
  if (!isJsonObject(filter)) throw badField("filter", "invalid_type", '"filter" must be an object');
  assertSize(filter);
  const conditions = Object.entries(filter).flatMap(([path, wanted]) => conditionsOf(path, wanted));
  if (conditions.length > FILTER_CONDITIONS_MAX) {
    throw badField("filter", "too_long", `"filter" must have at most ${FILTER_CONDITIONS_MAX} conditions`);
  }
  return conditions;
}

/** Bounds a filter, because SQLite reads the path of each name for each vector and compares each value. */
function assertSize(filter: JsonObject): void {
  for (const name of Object.keys(filter)) {
    if (name.length > FILTER_NAME_LENGTH_MAX) {
      const start = `${name.slice(0, 50)}…`;
      throw problem(start, `must have a name of at most ${FILTER_NAME_LENGTH_MAX} characters`);
    }
  }
  if (!isWithin(filter)) {
    throw badField("filter", "too_long", `"filter" must be at most ${FILTER_LENGTH_MAX} characters of JSON`);
  }
}

/** Whether the filter's JSON has at most FILTER_LENGTH_MAX characters, counted without serialising it. */
function isWithin(filter: JsonObject): boolean {
  let left = FILTER_LENGTH_MAX;
  const take = (value: JsonValue): boolean => {
    if (typeof value === "string") left -= value.length + '"",'.length;
    else if (Array.isArray(value)) return value.every(take);
    else if (isJsonObject(value)) {
      return Object.entries(value).every(([name, member]) => {
        left -= name.length + '"":'.length;
        return take(member);
      });
    } else left -= String(value).length + ",".length;
    return left >= 0;
  };
  return take(filter);
}

function conditionsOf(path: string, wanted: JsonValue): MetadataCondition[] {
  if (!isJsonObject(wanted)) return [{ operator: "in", path, values: [primitive(path, wanted)] }];
  const entries = Object.entries(wanted);
  if (entries.length === 0) throw problem(path, "must be a value or hold an operator");
  return entries.map(([operator, operand]) => conditionOf(path, operator, operand));
}

function conditionOf(path: string, operator: string, operand: JsonValue): MetadataCondition {
  switch (operator) {
    case "$eq":
      return { operator: "in", path, values: [primitive(path, operand)] };
    case "$ne":
      return { operator: "notIn", path, values: [primitive(path, operand)] };
    case "$in":
      return { operator: "in", path, values: primitives(path, operand) };
    case "$gt":
    case "$gte":
    case "$lt":
    case "$lte":
      if (typeof operand !== "string" && typeof operand !== "number") {
        throw problem(path, `${operator} takes a number or a string`);
      }
      return { operator: RANGES[operator], path, value: operand };
    default:
      throw problem(path, `has the operator "${operator}": $eq, $ne, $in, $gt, $gte, $lt and $lte are there`);
  }
}

function primitives(path: string, operand: JsonValue): FilterPrimitive[] {
  if (!Array.isArray(operand)) throw problem(path, "$in takes an array");
  if (operand.length > FILTER_VALUES_MAX) throw problem(path, `$in takes at most ${FILTER_VALUES_MAX} values`);
  return operand.map((value) => primitive(path, value));
}

function primitive(path: string, value: JsonValue): FilterPrimitive {
  if (value !== null && typeof value === "object") throw problem(path, "must be a string, number, boolean or null");
  return value;
}

const problem = (path: string, message: string): Error =>
  badField(`filter.${path}`, "invalid_value", `"filter.${path}" ${message}`);

/** Returns SQL for whether the column `metadata` meets the conditions; `bind` returns the placeholder of a value. */
export function conditionsSql(
  conditions: readonly MetadataCondition[],
  bind: (value: string | number) => string,
): string {
  return conditions.map((condition) => `(${conditionSql(condition, bind)})`).join(" AND ");
}

function conditionSql(condition: MetadataCondition, bind: (value: string | number) => string): string {
  const member = memberSql(condition.path, bind);
  if ("values" in condition) {
    // Members are compared as JSON text, so that 1, "1" and true differ. An absent member is null.
    const list = bind(JSON.stringify(condition.values.map((value) => JSON.stringify(value))));
    const operator = condition.operator === "in" ? "IN" : "NOT IN";
    return `coalesce(${member("->")}, 'null') ${operator} (SELECT value FROM json_each(${list}))`;
  }
  // Numbers are compared with numbers and text with text; a member of another type does not match.
  const types = typeof condition.value === "number" ? "'integer', 'real'" : "'text'";
  return `${member("json_type")} IN (${types}) AND ${member("->>")} ${condition.operator} ${bind(condition.value)}`;
}

type Access = "->" | "->>" | "json_type";

/** Returns SQL for the member of exactly that name or, if it does not exist and the name has dots, the nested member. */
function memberSql(path: string, bind: (value: string) => string): (access: Access) => string {
  const whole = bind(`$.${JSON.stringify(path)}`);
  const parts = path.split(".").map((name) => `.${JSON.stringify(name)}`);
  const nested = parts.length === 1 ? null : bind(`$${parts.join("")}`);
  const get = (access: Access, place: string): string =>
    access === "json_type" ? `json_type(metadata, ${place})` : `metadata ${access} ${place}`;
  return (access) => (nested === null ? get(access, whole) : `coalesce(${get(access, whole)}, ${get(access, nested)})`);
}
