import type { TableRecord } from "../../config/types.ts";
import type { SqlValue } from "../../db/index.ts";
import { badField } from "../../kernel/errors.ts";
import { orderValue } from "../../kernel/records/order.ts";
import { valueAt } from "../../kernel/records/value-path.ts";
import { SORT_TERMS_MAX } from "../limits.ts";
import { type FieldPath, resolveField } from "../model/field-path.ts";
import type { TableModel } from "../model/model.ts";
import { join, type SqlCondition } from "./filter-sql.ts";

export interface SortTerm {
  field: FieldPath;
  direction: "asc" | "desc";
}

/** A total order: it ends with the id, so pages never overlap. */
export interface Sort {
  terms: readonly SortTerm[];
  /** Identifies the order: a cursor is valid in its own order only. */
  key: string;
}

/** Parses `title:desc,year`; null or empty: by id. Errors: 400 for an unknown field or direction. [TB6] */
export function parseSort(model: TableModel, text: string | null): Sort {
  const parts = text === null || text === "" ? [] : text.split(",");
  if (parts.length > SORT_TERMS_MAX) throw badField("sort", "too_long", `sort takes at most ${SORT_TERMS_MAX} fields`);
  const terms: SortTerm[] = [];
  for (const part of parts) {
    const [name = "", direction = "asc", ...rest] = part.trim().split(":");
    const field = resolveField(model, name);
    if (field === null) throw badField("sort", "unknown_field", `sort: ${name} is not a field of ${model.name}`);
    if ((direction !== "asc" && direction !== "desc") || rest.length > 0) {
      throw badField("sort", "invalid_value", `sort: "${part}" must be field:asc or field:desc`);
    }
    if (terms.some((term) => term.field.name === name)) continue;
    terms.push({ field, direction });
    // The id is unique, so later terms have no effect.
    if (name === "id") break;
  }
  const id = resolveField(model, "id");
  if (id !== null && terms.at(-1)?.field.name !== "id") terms.push({ field: id, direction: "asc" });
  return { terms, key: terms.map((term) => `${term.field.name}:${term.direction}`).join(",") };
}

/** Whether the order is just id ascending. */
export const isById = (sort: Sort): boolean => sort.key === "id:asc";

interface TermSql {
  sql: string;
  params: SqlValue[];
  isNullable: boolean;
}

function termSql(field: FieldPath, alias: string): TermSql {
  const column = `${alias}${field.column.sql}`;
  if (!field.isJson) return { sql: column, params: [], isNullable: field.column.isNullable };
  return { sql: `json_extract(${column}, ?)`, params: [field.jsonPath], isNullable: true };
}

/** The ORDER BY list. Nulls come first in ascending order, last in descending order. `reverse` reverses all of it. */
export function orderBy(sort: Sort, options: { reverse: boolean; alias?: string }): SqlCondition {
  const parts = sort.terms.map((term) => {
    const { sql, params } = termSql(term.field, options.alias ?? "");
    const isDescending = (term.direction === "desc") !== options.reverse;
    return { sql: `${sql} ${isDescending ? "DESC" : "ASC"}`, params };
  });
  return { sql: parts.map((part) => part.sql).join(", "), params: parts.flatMap((part) => part.params) };
}

/** The values of a record that determine its position, as SQLite compares them. */
export function sortValues(sort: Sort, record: TableRecord): SqlValue[] {
  return sort.terms.map(({ field }) => orderValue(valueAt(record, field)));
}

/** The records after a position in an order. */
export interface Beyond {
  condition: SqlCondition;
  /** The same as consecutive ranges of an index over the terms; null where that is not possible. */
  ranges: readonly SqlCondition[] | null;
}

/** The records strictly after the position of `values`; with `reverse`, before it. */
export function beyond(sort: Sort, values: readonly SqlValue[], options: { reverse: boolean }): Beyond {
  const terms = sort.terms.map(({ field, direction }, index) => ({
    field,
    column: field.column.sql,
    value: values[index] ?? null,
    isDescending: (direction === "desc") !== options.reverse,
  }));
  const [leading, tie, ...others] = terms;
  if (leading === undefined || terms.some(({ field }) => field.isJson)) {
    return { condition: anyBeyond(sort, values, options), ranges: null };
  }
  const isRow = terms.every(({ field, value, isDescending }) => {
    // A comparison with null is neither true nor false; in descending order nulls follow every value.
    const isComparable = value !== null && !(isDescending && field.column.isNullable);
    return isComparable && isDescending === leading.isDescending;
  });
  if (isRow) {
    // A comparison of row values, for which SQLite uses an index.
    const comparison = leading.isDescending ? "<" : ">";
    const sql = `(${terms.map(({ column }) => column).join(", ")}) ${comparison} (${terms.map(() => "?").join(", ")})`;
    const condition = { sql, params: terms.map(({ value }) => value) };
    return { condition, ranges: [condition] };
  }
  const condition = anyBeyond(sort, values, options);
  if (tie === undefined || tie.value === null || others.length > 0) return { condition, ranges: null };
  const behindTie = { sql: `${tie.column} ${tie.isDescending ? "<" : ">"} ?`, params: [tie.value] };
  const place = { sql: leading.column, params: [], isNullable: leading.field.column.isNullable };
  const ties = join([atValue(place, leading.value), behindTie], "AND");
  return { condition, ranges: [ties, ...rangesAfter(place, leading.value, leading.isDescending)] };
}

/** The ranges after a value; nulls are a range of their own. */
function rangesAfter({ sql, isNullable }: TermSql, value: SqlValue, isDescending: boolean): SqlCondition[] {
  const nulls = { sql: `${sql} IS NULL`, params: [] };
  if (value === null) return isDescending ? [] : [{ sql: `${sql} IS NOT NULL`, params: [] }];
  const values = { sql: `${sql} ${isDescending ? "<" : ">"} ?`, params: [value] };
  return isDescending && isNullable ? [values, nulls] : [values];
}

function anyBeyond(sort: Sort, values: readonly SqlValue[], options: { reverse: boolean }): SqlCondition {
  let rest: SqlCondition | null = null;
  for (const [index, term] of [...sort.terms.entries()].reverse()) {
    const place = termSql(term.field, "");
    const value = values[index] ?? null;
    const isDescending = (term.direction === "desc") !== options.reverse;
    const after = afterValue(place, value, isDescending);
    rest = rest === null ? after : join([after, join([atValue(place, value), rest], "AND")], "OR");
    // Repeated as a bound on the leading term, by which SQLite can enter an index.
    const bound = index === 0 ? leadingBound(place, value, isDescending) : null;
    if (bound !== null && sort.terms.length > 1) rest = join([bound, rest], "AND");
  }
  return rest ?? { sql: "1", params: [] };
}

function afterValue(place: TermSql, value: SqlValue, isDescending: boolean): SqlCondition {
  if (!isDescending) {
    if (value === null) return { sql: `${place.sql} IS NOT NULL`, params: place.params };
    return { sql: `${place.sql} > ?`, params: [...place.params, value] };
  }
  if (value === null) return { sql: "0", params: [] };
  const below = { sql: `${place.sql} < ?`, params: [...place.params, value] };
  return place.isNullable ? join([below, { sql: `${place.sql} IS NULL`, params: place.params }], "OR") : below;
}

const atValue = (place: TermSql, value: SqlValue): SqlCondition =>
  value === null
    ? { sql: `${place.sql} IS NULL`, params: place.params }
    : { sql: `${place.sql} = ?`, params: [...place.params, value] };

function leadingBound(place: TermSql, value: SqlValue, isDescending: boolean): SqlCondition | null {
  if (value === null || (isDescending && place.isNullable)) return null;
  return { sql: `${place.sql} ${isDescending ? "<=" : ">="} ?`, params: [...place.params, value] };
}
