import { badField } from "../../../../kernel/errors.ts";
import { orderValue } from "../../../../kernel/records/order.ts";
import { valueAt } from "../../../../kernel/records/value-path.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue } from "../../../db/index.ts";
import { SORT_TERMS_MAX } from "../limits.ts";
import { type FieldPath, resolveField } from "../model/field-path.ts";
import type { TableModel } from "../model/model.ts";
import { isHiddenAddress, type OwnAddress } from "./filter.ts";
import { join, type SqlCondition, VALUE } from "./filter-sql.ts";

export interface SortTerm {
  field: FieldPath;
  direction: "asc" | "desc";
  /** The caller, whose record has this address for the caller alone; null where all see the same. */
  own: OwnAddress | null;
}

/** A total order: it ends with the id, so that pages never overlap. */
export interface Sort {
  terms: readonly SortTerm[];
  /** Identifier of the order: a cursor is valid in its own order only. */
  key: string;
  /** Text that is equal for callers who see the same values. */
  seenBy: string;
}

const keyOf = (terms: readonly SortTerm[]): string =>
  terms.map(({ field, direction }) => `${field.name}:${direction}`).join(",");

/**
 * Parses `title:desc,year`; null or empty: by id. Records of equal values follow in the direction of the last term, so that an
 * index is walked in one direction. `own`: the caller, whose own address is in its place. Errors: 400 for an unknown field or direction. [TB6]
 */
export function parseSort(model: TableModel, text: string | null, own?: OwnAddress): Sort {
  if (text !== null && text !== "") return sortOf(model, text.split(","), own ?? null);
  const known = ordersById.get(model) ?? sortOf(model, [], null);
  ordersById.set(model, known);
  return known;
}

const ordersById = new WeakMap<TableModel, Sort>();

function sortOf(model: TableModel, parts: readonly string[], own: OwnAddress | null): Sort {
  if (parts.length > SORT_TERMS_MAX) throw badField("sort", "too_long", `sort takes at most ${SORT_TERMS_MAX} fields`);
  const terms: SortTerm[] = [];
  for (const part of parts) {
    const [name = "", direction = "asc", ...rest] = part.trim().split(":");
    const field = resolveField(model, name);
    if (field === null) throw badField("sort", "unknown_field", `sort: ${name} is not a field of ${model.name}`);
    if (field.column.links !== null) {
      throw badField("sort", "invalid_type", `sort: ${name} has several references, which have no order`);
    }
    if ((direction !== "asc" && direction !== "desc") || rest.length > 0) {
      throw badField("sort", "invalid_value", `sort: "${part}" must be field:asc or field:desc`);
    }
    if (field.column.type === "geo") {
      throw badField(
        "sort",
        "invalid_type",
        `sort: ${name} is a geo field, whose values have no order; near sorts by distance`,
      );
    }
    if (terms.some((term) => term.field.name === name)) continue;
    terms.push({ field, direction, own: isHiddenAddress(model, field) ? own : null });
    // The id is unique, so later terms have no effect.
    if (name === "id") break;
  }
  const id = resolveField(model, "id");
  const last = terms.at(-1);
  if (id !== null && last?.field.name !== "id")
    terms.push({ field: id, direction: last?.direction ?? "asc", own: null });
  const isOwn = terms.some((term) => term.own !== null);
  return { terms, key: keyOf(terms), seenBy: isOwn ? JSON.stringify([own?.id, own?.email]) : "" };
}

/**
 * Returns the key of this order in cursors of 0.2, where the id behind other fields was ascending. Such a cursor continues in
 * today's order.
 */
export const formerKeyOf = ({ terms, key }: Sort): string => {
  const before = terms.slice(0, -1);
  return before.length === 0 ? key : `${keyOf(before)},id:asc`;
};

/** Whether the order is by id ascending only. */
export const isById = (sort: Sort): boolean => sort.key === "id:asc";

interface TermSql {
  sql: string;
  params: SqlValue[];
  isNullable: boolean;
}

function termSql({ field, own }: SortTerm, alias: string): TermSql {
  const column = `${alias}${field.column.sql}`;
  if (own !== null) {
    const sql = `CASE WHEN ${alias}"id" = ? THEN ? ELSE ${column} END`;
    return { sql, params: [own.id, own.email], isNullable: true };
  }
  if (!field.isJson) return { sql: column, params: [], isNullable: field.column.isNullable };
  return { sql: `json_extract(${column}, ?)`, params: [field.jsonPath], isNullable: true };
}

/** Returns the ORDER BY list. Nulls come first in ascending order, last in descending order. `reverse` reverses all of it. */
export function orderBy(sort: Sort, options: { reverse: boolean; alias?: string }): SqlCondition {
  const parts = sort.terms.map((term) => {
    const { sql, params } = termSql(term, options.alias ?? "");
    const isDescending = (term.direction === "desc") !== options.reverse;
    return { sql: `${sql} ${isDescending ? "DESC" : "ASC"}`, params };
  });
  return { sql: parts.map((part) => part.sql).join(", "), params: parts.flatMap((part) => part.params) };
}

/** Returns the values of a record that determine its position, as SQLite compares them. */
export function sortValues(sort: Sort, record: TableRecord): SqlValue[] {
  return sort.terms.map(({ field, own }) =>
    own !== null && record["id"] === own.id ? own.email : orderValue(valueAt(record, field)),
  );
}

/** Condition for the records after a position in an order. */
export interface Beyond {
  condition: SqlCondition;
  /** Consecutive ranges of an index over the terms with the same records; null when that is not possible. */
  ranges: readonly SqlCondition[] | null;
}

/** Returns the condition for the records strictly after the position of `values`; with `reverse`, before it. */
export function beyond(sort: Sort, values: readonly SqlValue[], options: { reverse: boolean }): Beyond {
  const ranges = rangesBeyond(sort, values, options);
  return {
    condition: ranges?.length === 1 && ranges[0] !== undefined ? ranges[0] : anyBeyond(sort, values, options),
    ranges,
  };
}

/**
 * Returns the ranges after a position; null for terms in JSON, of one's own address, or of both directions, or nulls behind the first term. Nulls of the
 * first term are a range of their own.
 */
function rangesBeyond(
  sort: Sort,
  values: readonly SqlValue[],
  { reverse }: { reverse: boolean },
): SqlCondition[] | null {
  const [leading, ...others] = sort.terms;
  if (
    leading === undefined ||
    sort.terms.some(({ field, own, direction }) => field.isJson || own !== null || direction !== leading.direction)
  ) {
    return null;
  }
  const isDescending = (leading.direction === "desc") !== reverse;
  const [first = null, ...rest] = values;
  // Row values with null compare neither true nor false; in descending order nulls follow every value.
  const isComparable = others.every(({ field }, index) => {
    const isNull = (rest[index] ?? null) === null;
    return !isNull && !(isDescending && field.column.isNullable);
  });
  if (!isComparable) return null;
  const column = leading.field.column.sql;
  const after = (terms: readonly SortTerm[], place: readonly SqlValue[]): SqlCondition => ({
    sql: `(${terms.map(({ field }) => field.column.sql).join(", ")}) ${isDescending ? "<" : ">"} (${terms.map(() => "?").join(", ")})`,
    params: [...place],
  });
  const isNull = { sql: `${column} IS NULL`, params: [] };
  if (first === null) {
    const ties = join([isNull, after(others, rest)], "AND");
    return isDescending ? [ties] : [ties, { sql: `${column} IS NOT NULL`, params: [] }];
  }
  const behind = after(sort.terms, values);
  return isDescending && leading.field.column.isNullable ? [behind, isNull] : [behind];
}

function anyBeyond(sort: Sort, values: readonly SqlValue[], options: { reverse: boolean }): SqlCondition {
  let rest: SqlCondition | null = null;
  for (const [index, term] of [...sort.terms.entries()].reverse()) {
    const place = termSql(term, "");
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
    : { sql: `${place.sql} = ${VALUE}`, params: [...place.params, value] };

function leadingBound(place: TermSql, value: SqlValue, isDescending: boolean): SqlCondition | null {
  if (value === null || (isDescending && place.isNullable)) return null;
  return { sql: `${place.sql} ${isDescending ? "<=" : ">="} ?`, params: [...place.params, value] };
}
