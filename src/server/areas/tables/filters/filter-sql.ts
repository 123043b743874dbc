import { unreachable } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { primaryKeyIndexName, quoteIdentifier, type SqlValue } from "../../../db/index.ts";
import type { FieldPath } from "../model/field-path.ts";
import { areaToSql } from "./areas.ts";
import {
  type Condition,
  type Group,
  hasRelations,
  isLinked,
  isRelation,
  type Join,
  type ParsedFilter,
  type Relation,
} from "./filter.ts";
import { jsonNumber, jsonText, kindOf, type Needle, needleOf, Slot, type ValueKind } from "./slots.ts";

/** A boolean SQL expression and its bound values in the order of their placeholders. */
export interface SqlCondition {
  sql: string;
  params: SqlValue[];
}

/**
 * Place of a bound value to which something is equal. Without the sign, SQLite prepares a statement with an order again whenever such a
 * value is bound, which takes half as long as reading a page.
 */
export const VALUE = "+?";

/** Returns the statement with a request's values in its slots. */
export function bound({ sql, params }: SqlCondition, values: readonly SqlValue[]): SqlCondition {
  if (values.length === 0) return { sql, params };
  const filled: SqlValue[] = [];
  for (const param of params as unknown[]) {
    filled.push(param instanceof Slot ? (values[param.place] ?? null) : (param as SqlValue));
  }
  return { sql, params: filled };
}

/**
 * Operator for equality. For `column = value` SQLite replaces the column by the value elsewhere in the WHERE, also in the CASE of
 * a rule, which would then not test the record. `IS` uses the same indexes and is not replaced.
 */
export interface Form {
  equality: "=" | "IS";
  /**
   * Way in which several references are compared: `test` looks each record up in their index, `enter` finds the records by it. The latter takes
   * as long as there are records with the id.
   */
  links: "test" | "enter";
}

const EQUALS: Form = { equality: "=", links: "test" };

/**
 * Returns the SQL of a filter; null for one without conditions. `alias` (a name and a dot) precedes each column, because inside
 * `json_each` a bare name could be its own `value`, `key` or `type`. `inside`: the relation whose filter it is.
 */
export function filterToSql(
  filter: ParsedFilter,
  alias: string,
  form: Form = EQUALS,
  inside: Inside = OUTSIDE,
): SqlCondition | null {
  const parts = filter.all.map((condition) => conditionToSql(condition, alias, form));
  for (const group of filter.groups) parts.push(groupToSql(group, alias, form, inside));
  return parts.length === 0 ? null : join(parts, "AND");
}

/** Number of relations around a filter, and the alias of the record in which the innermost stands. */
export interface Inside {
  level: number;
  outer: string;
}

export const OUTSIDE: Inside = { level: 0, outer: "" };

function groupToSql(group: Group, alias: string, form: Form, inside: Inside): SqlCondition {
  if (group.kind === "join") return { sql: joinToSql(group, alias, inside.outer), params: [] };
  if (isRelation(group)) return relationToSql(group, alias, inside.level + 1);
  const { kind, filters } = group;
  if (filters.length === 0) return { sql: kind === "or" ? "0" : "1", params: [] };
  const some = join(
    filters.map((filter) => filterToSql(filter, alias, form, inside) ?? { sql: "1", params: [] }),
    "OR",
  );
  return kind === "or" ? some : negate(some);
}

/** Alias of a related table. No table has this name: names do not begin with `_platform`. A statement with it reads several tables. */
export const RELATED = "_platform_related";

/** Returns whether a relation holds for the record of `outer`. */
export function relationToSql(
  { kind, filters, model, index, readable }: Relation,
  outer: string,
  level: number,
): SqlCondition {
  const alias = `${RELATED}${level}`;
  const inside = { level, outer };
  const form: Form = { ...EQUALS, links: index === primaryKeyIndexName(model.name) ? "enter" : "test" };
  const where =
    readable === null
      ? filterToSql(filters[0], `${alias}.`, form, inside)
      : readableToSql(filters[0], readable, `${alias}.`, { inside, form });
  const from = `${model.sql} AS ${alias} INDEXED BY ${quoteIdentifier(index)}`;
  // The sign keeps SQLite from making a join of it, by which a record is found in several times as long.
  const sql = `${kind === "none" ? "NOT " : "+"}EXISTS (SELECT 1 FROM ${from} WHERE ${where?.sql ?? "1"})`;
  return { sql, params: where?.params ?? [] };
}

/**
 * Returns a relation's filter on records that the caller may read: only the comparisons by which an index is entered are next to the
 * rule, all others behind it. [TB110]
 */
function readableToSql(
  { all, groups }: ParsedFilter,
  readable: ParsedFilter,
  alias: string,
  { inside, form }: { inside: Inside; form: Form },
): SqlCondition | null {
  const isEntering = (one: Condition) =>
    !one.field.isJson && (one.operator === "==" || one.operator === "in" || isLinked(one));
  const entering = { all: all.filter(isEntering), groups: groups.filter((one) => one.kind === "join") };
  const others = { all: all.filter((one) => !isEntering(one)), groups: groups.filter((one) => one.kind !== "join") };
  const rule = filterToSql(readable, alias, EQUALS, inside) ?? { sql: "1", params: [] };
  const own = filterToSql(others, alias, EQUALS, inside) ?? { sql: "1", params: [] };
  const guarded = { sql: `CASE WHEN ${rule.sql} THEN ${own.sql} ELSE 0 END`, params: [...rule.params, ...own.params] };
  const parts = [filterToSql(entering, alias, { ...form, equality: "IS" }, inside), guarded].filter(
    (part) => part !== null,
  );
  return join(parts, "AND");
}

/** Compares a related field with one of the outer record, which equals nothing where it is null. */
function joinToSql({ field, operator, outer }: Join, alias: string, outerAlias: string): string {
  const [own, other] = [`${alias}${field.column.sql}`, `${outerAlias}${outer.column.sql}`];
  if (operator === "==") return `${own} = ${other}`;
  return operator === "!=" ? `(${other} IS NULL OR ${own} IS NOT ${other})` : `${own} ${operator} ${other}`;
}

export function join(parts: readonly SqlCondition[], word: "AND" | "OR"): SqlCondition {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return { sql: parts.map((part) => `(${part.sql})`).join(` ${word} `), params: parts.flatMap((part) => part.params) };
}

/**
 * Combines the rule's filter and the caller's conditions. CASE makes SQLite evaluate the rule first: the caller's conditions
 * never run on hidden records, so neither their time nor an error reveals the contents of these. `links`: of the conditions by which
 * an index may be entered. [TB110]
 */
export function behindRule(
  rule: ParsedFilter,
  own: SqlCondition | null,
  alias: string,
  links: Form["links"] = "test",
): SqlCondition | null {
  if (own === null) return filterToSql(rule, alias, { ...EQUALS, links });
  const asked = filterToSql(rule, alias);
  if (asked === null) return own;
  const guarded = {
    sql: `CASE WHEN ${asked.sql} THEN ${own.sql} ELSE 0 END`,
    params: [...asked.params, ...own.params],
  };
  // By these an index may be entered. Relations enter none, and are asked once.
  const beside = filterToSql(hasRelations(rule) ? { ...rule, groups: [] } : rule, alias, {
    equality: "IS",
    links,
  });
  return beside === null ? guarded : join([beside, guarded], "AND");
}

function conditionToSql(condition: Condition, alias: string, form: Form): SqlCondition {
  const { field } = condition;
  if (field.column.links !== null) return linkedToSql(condition, field.column.links, `${alias}"id"`, form);
  return field.isJson ? jsonToSql(condition, alias) : columnToSql(condition, `${alias}${field.column.sql}`, form);
}

/** Returns a condition on several references, of whose ids `links` is the index. */
function linkedToSql({ operator, value }: Condition, links: string, id: string, form: Form): SqlCondition {
  const isOne = operator === "has";
  const target = isOne ? `"target" = ?` : `"target" IN (SELECT value FROM json_each(?))`;
  const params = [isOne ? (value as SqlValue) : jsonText(value as JsonValue)];
  const isAll = operator === "hasAll";
  // Each id is listed once, and linked once.
  if (isAll) params.push(...params);
  if (form.links === "enter") {
    const all = isAll ? ` GROUP BY "id" HAVING count(*) = json_array_length(?)` : "";
    return { sql: `${id} IN (SELECT "id" FROM ${links} WHERE ${target}${all})`, params };
  }
  const found = `FROM ${links} WHERE ${target} AND "id" = ${id}`;
  // The sign keeps SQLite from making a join of it.
  const sql = isAll ? `(SELECT count(*) ${found}) = json_array_length(?)` : `+EXISTS (SELECT 1 ${found})`;
  return { sql, params };
}

/** Returns a value other than an object as stored in SQLite. */
export const scalar = (value: JsonValue): SqlValue =>
  typeof value === "boolean" ? Number(value) : (value as string | number | null);

function columnToSql(condition: Condition, column: string, { equality }: Form): SqlCondition {
  switch (condition.operator) {
    case "==":
      if (condition.value === null) return { sql: `${column} IS NULL`, params: [] };
      return { sql: `${column} ${equality} ${VALUE}`, params: [scalar(condition.value)] };
    case "!=":
      if (condition.value === null) return { sql: `${column} IS NOT NULL`, params: [] };
      return { sql: `${column} IS NOT ?`, params: [scalar(condition.value)] };
    case "contains":
      return { sql: `instr(${column}, ?) > 0`, params: [scalar(condition.value)] };
    case "icontains":
    case "startsWith":
    case "istartsWith":
      return textToSql(needleOf(condition.operator, condition.value), { sql: column, params: [] });
    case "within":
    case "inBox":
      return areaToSql(column, condition.value);
    case "in":
      return columnIn(column, condition.value);
    case "not in":
      return negate(columnIn(column, condition.value));
    case "has":
    case "hasAny":
    case "hasAll":
      throw new Error("only several references are compared by ids");
    case ">":
    case ">=":
    case "<":
    case "<=":
      return { sql: `${column} ${condition.operator} ?`, params: [scalar(condition.value)] };
    default:
      return unreachable(condition);
  }
}

/**
 * Returns the SQL of a text operator. `startsWith` is a range, by which SQLite can enter an index. The beginning of a text is
 * compared in bytes, because SQLite counts characters up to the first NUL only.
 */
function textToSql({ by, values }: Needle, { sql, params }: SqlCondition): SqlCondition {
  const all = [...params, ...values];
  if (by === "anywhere") return { sql: `instr(lower(${sql}), ?) > 0`, params: all };
  if (by === "beginning") {
    return { sql: `lower(CAST(substr(CAST(${sql} AS BLOB), 1, ?) AS TEXT)) = ?`, params: all };
  }
  if (values.length === 1) return { sql: `${sql} >= ?`, params: all };
  const [from = null, end = null] = values;
  return join(
    [
      { sql: `${sql} >= ?`, params: [...params, from] },
      { sql: `${sql} < ?`, params: [...params, end] },
    ],
    "AND",
  );
}

/** Negates a condition. NULL counts as false: a record either matches or does not. */
const negate = (part: SqlCondition): SqlCondition => ({ sql: `NOT coalesce((${part.sql}), 0)`, params: part.params });

/** Returns `column IN (…)`, null included. */
export function columnIn(column: string, values: readonly JsonValue[]): SqlCondition {
  const present = values.filter((value) => value !== null).map(scalar);
  const parts: SqlCondition[] = [];
  if (present.length > 0) parts.push({ sql: `${column} IN (${marks(present.length)})`, params: padded(present) });
  if (present.length < values.length) parts.push({ sql: `${column} IS NULL`, params: [] });
  return parts.length === 0 ? { sql: "0", params: [] } : join(parts, "OR");
}

/**
 * Pads the length of a list to a power of two, so that eleven statements serve all lengths. Lists are padded with their last
 * value.
 */
export const slotCount = (length: number): number => 2 ** Math.ceil(Math.log2(length));
const marks = (length: number): string => Array(slotCount(length)).fill(VALUE).join(",");
const padded = (values: readonly SqlValue[]): SqlValue[] => [
  ...values,
  ...Array<SqlValue>(slotCount(values.length) - values.length).fill(values.at(-1) ?? null),
];

/** Place of a typed value: a path in a column, or an element of `json_each`. */
interface TypedPlace {
  type: SqlCondition;
  value: SqlCondition;
}

function placeOf(field: FieldPath, alias: string): TypedPlace {
  const column = `${alias}${field.column.sql}`;
  return {
    type: { sql: `json_type(${column}, ?)`, params: [field.jsonPath] },
    value: { sql: `json_extract(${column}, ?)`, params: [field.jsonPath] },
  };
}

/** Alias of an element. No table has this name: names do not begin with `_platform`. */
const ELEMENT_NAME = "_platform_element";
const ELEMENT: TypedPlace = {
  type: { sql: `${ELEMENT_NAME}.type`, params: [] },
  value: { sql: `${ELEMENT_NAME}.value`, params: [] },
};

function jsonToSql(condition: Condition, alias: string): SqlCondition {
  const place = placeOf(condition.field, alias);
  switch (condition.operator) {
    case "==":
      return equals(place, condition.value);
    case "!=":
      return negate(equals(place, condition.value));
    case "in":
      return jsonIn(place, condition.value);
    case "not in":
      return negate(jsonIn(place, condition.value));
    case "has":
    case "hasAny":
    case "hasAll":
      throw new Error("only several references are compared by ids");
    case "contains":
      return jsonContains(condition.field, alias, condition.value);
    case "icontains":
      return jsonContainsAnyCase(condition.field, alias, needleOf(condition.operator, condition.value));
    case "startsWith":
    case "istartsWith": {
      const text = textToSql(needleOf(condition.operator, condition.value), place.value);
      return join([{ sql: `${place.type.sql} = 'text'`, params: place.type.params }, text], "AND");
    }
    case ">":
    case ">=":
    case "<":
    case "<=":
      return typed(place, condition.value, condition.operator);
    case "within":
    case "inBox":
      throw new Error(`${condition.operator} was parsed for a JSON field`);
    default:
      return unreachable(condition);
  }
}

/** Returns `type = … AND value OP ?` for text and numbers: values of another type never match. */
function typed(place: TypedPlace, value: JsonValue, operator: "=" | ">" | ">=" | "<" | "<="): SqlCondition {
  const types = kindOf(value) === "text" ? "= 'text'" : "IN ('integer', 'real')";
  return {
    sql: `${place.type.sql} ${types} AND ${place.value.sql} ${operator} ${VALUE}`,
    params: [...place.type.params, ...place.value.params, jsonNumber(scalar(value))],
  };
}

function equals(place: TypedPlace, value: JsonValue): SqlCondition {
  const kind = kindOf(value);
  if (kind === "null") return { sql: `coalesce(${place.type.sql}, 'null') = 'null'`, params: place.type.params };
  if (kind === "boolean") return { sql: `${place.type.sql} = '${value}'`, params: place.type.params };
  if (kind !== "json") return typed(place, value, "=");
  return {
    sql: `${place.type.sql} IN ('object', 'array') AND ${place.value.sql} = ${VALUE}`,
    params: [...place.type.params, ...place.value.params, jsonText(value)],
  };
}

function jsonIn(place: TypedPlace, values: readonly JsonValue[]): SqlCondition {
  const parts: SqlCondition[] = [];
  const list = (types: string, wanted: readonly SqlValue[]): void => {
    if (wanted.length === 0) return;
    parts.push({
      sql: `${place.type.sql} IN (${types}) AND ${place.value.sql} IN (${marks(wanted.length)})`,
      params: [...place.type.params, ...place.value.params, ...padded(wanted)],
    });
  };
  const ofKind = (kind: ValueKind) => values.filter((value) => kindOf(value) === kind);
  list("'text'", ofKind("text").map(scalar));
  list(
    "'integer', 'real'",
    ofKind("number").map((value) => jsonNumber(scalar(value))),
  );
  list("'object', 'array'", ofKind("json").map(jsonText));
  for (const value of [null, true, false]) if (values.includes(value)) parts.push(equals(place, value));
  return parts.length === 0 ? { sql: "0", params: [] } : join(parts, "OR");
}

/** Tests membership in an array, or a substring of text. */
function jsonContains(field: FieldPath, alias: string, value: JsonValue): SqlCondition {
  const column = `${alias}${field.column.sql}`;
  const element = equals(ELEMENT, value);
  const substring = kindOf(value) === "text";
  return {
    sql:
      `CASE json_type(${column}, ?) WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(${column}, ?) AS ${ELEMENT_NAME} WHERE ${element.sql})` +
      `${substring ? ` WHEN 'text' THEN instr(json_extract(${column}, ?), ?) > 0` : ""} ELSE 0 END`,
    params: [field.jsonPath, field.jsonPath, ...element.params, ...(substring ? [field.jsonPath, scalar(value)] : [])],
  };
}

/** Tests as `jsonContains` does, ignoring the case of A–Z; only elements that are texts are equal to a text. */
function jsonContainsAnyCase(field: FieldPath, alias: string, { values }: Needle): SqlCondition {
  const column = `${alias}${field.column.sql}`;
  const isEqual = `${ELEMENT_NAME}.type = 'text' AND lower(${ELEMENT_NAME}.value) = ?`;
  return {
    sql:
      `CASE json_type(${column}, ?) WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(${column}, ?) AS ${ELEMENT_NAME} WHERE ${isEqual})` +
      ` WHEN 'text' THEN instr(lower(json_extract(${column}, ?)), ?) > 0 ELSE 0 END`,
    params: [field.jsonPath, field.jsonPath, ...values, field.jsonPath, ...values],
  };
}
