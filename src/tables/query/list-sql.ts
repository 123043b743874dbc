import { quoteIdentifier, type SqlValue } from "../../db/index.ts";
import { QUICK_STEPS_MAX } from "../limits.ts";
import type { Column, TableModel } from "../model/model.ts";
import type { ParsedFilter } from "./filter.ts";
import { behindRule, join, type SqlCondition } from "./filter-sql.ts";
import type { Walk } from "./index-choice.ts";
import { type ReadCost, sortedCost } from "./read-cost.ts";
import { type Beyond, orderBy, type Sort } from "./sort.ts";

/** What is looked for. */
export interface Matches {
  where: SqlCondition | null;
  /** The index in which that lies side by side; null: there is none. */
  index: string | null;
  /** Of looking at every record for it. */
  cost: ReadCost;
  /** The rule's part of it. */
  rule: ParsedFilter | null;
}

export interface ListQuery {
  matches: Matches;
  /** The place that the page begins at, where it is not told by `offset`. */
  behind: Beyond | null;
  sort: Sort;
  /** true: the same order backwards. */
  reverse: boolean;
  limit: number;
  offset: number;
  walk: Walk | null;
  isTotalWanted: boolean;
}

/** The statements of a list, made once for all requests that ask the same. */
export interface PreparedList {
  page: SqlCondition;
  /** null: not wanted. `sql` null: all rows, whose number is known. */
  total: { sql: SqlCondition | null } | null;
  /** For when few match: found by their index, whatever the order wanted would suggest. */
  ofFew: { count: SqlCondition; bytes: SqlCondition | null; page: SqlCondition } | null;
  /** The page is found along an index; `steps` counts what it takes where that is not told by the page's size. */
  walk: { steps: Steps | null } | null;
  /** Without the help of an index. */
  cost: ReadCost;
}

/** Records that are looked at, counted up to few, and then their bytes. */
export interface Steps {
  count: SqlCondition;
  bytes: SqlCondition;
}

export function prepareList(model: TableModel, query: ListQuery): PreparedList {
  const { matches, isTotalWanted, walk } = query;
  const few = countOfFew(model, matches);
  const isShort = query.offset + query.limit <= QUICK_STEPS_MAX;
  return {
    page: walk === null ? page(model, query, null) : walkedPage(model, query, walk),
    total: isTotalWanted ? { sql: countOf(model, matches) } : null,
    ofFew: few === null ? null : { count: few, bytes: sortedBytes(model, query), page: pageOfFew(model, query) },
    walk: walk === null || !isShort ? null : { steps: walk.by === "groups" ? lastGroup(model, query, walk) : null },
    cost: sortedCost(matches.cost, query.sort, query.offset + query.limit),
  };
}

export const countOf = (model: TableModel, { where }: Matches): SqlCondition | null =>
  where === null ? null : { sql: `SELECT count(*) FROM ${model.sql}${whereSql([where])}`, params: where.params };

/** Stops where there are too many to be few. null: no index tells. */
export function countOfFew(model: TableModel, { where, index }: Matches): SqlCondition | null {
  if (where === null || index === null) return null;
  return countUpToFew(`FROM ${from(model, index)}${whereSql([where])}`, where.params);
}

const countUpToFew = (found: string, params: SqlValue[]): SqlCondition => ({
  sql: `SELECT count(*) FROM (SELECT 1 ${found} LIMIT ${QUICK_STEPS_MAX + 1})`,
  params,
});

const bytesOf = (columns: readonly Column[], found: string, params: SqlValue[]): SqlCondition => ({
  sql: `SELECT sum(${columns.map(({ sql }) => `ifnull(octet_length(${sql}), 0)`).join(" + ")}) ${found}`,
  params,
});

const isText = ({ type }: Column): boolean => !["number", "integer", "boolean", "datetime"].includes(type);

/** What the few matches are sorted by; null: numbers and times, whose size is known. */
function sortedBytes(model: TableModel, { matches: { where, index }, sort }: ListQuery): SqlCondition | null {
  const texts = sort.terms.map(({ field }) => field.column).filter((column) => column.name !== "id" && isText(column));
  if (texts.length === 0) return null;
  return bytesOf(texts, `FROM ${from(model, index)}${whereSql([where])}`, where?.params ?? []);
}

/** Sorted by what the sort names alone; of the records those of the page are read, and no others. */
function pageOfFew(model: TableModel, query: ListQuery): SqlCondition {
  const { matches, sort, reverse, limit, offset } = query;
  const order = orderBy(sort, { reverse });
  const conditions = pageConditions(model, query);
  const found = `SELECT "id" FROM ${from(model, matches.index)}${whereSql(conditions)} ORDER BY ${order.sql} ${limitSql(limit, offset)}`;
  return {
    sql: `SELECT ${model.selectList} FROM ${model.sql} WHERE "id" IN (${found}) ORDER BY ${order.sql}`,
    params: [...paramsOf(conditions), ...order.params, ...(offset === 0 ? [] : [offset]), ...order.params],
  };
}

function page(model: TableModel, query: ListQuery, index: string | null): SqlCondition {
  const { sort, reverse, limit, offset } = query;
  const order = orderBy(sort, { reverse });
  const conditions = pageConditions(model, query);
  return {
    sql: `SELECT ${model.selectList} FROM ${from(model, index)}${whereSql(conditions)} ORDER BY ${order.sql} ${limitSql(limit, offset)}`,
    params: [...paramsOf(conditions), ...order.params, ...(offset === 0 ? [] : [offset])],
  };
}

/** A place within JSON values is compared as the caller's own conditions are: behind the rule. */
function pageConditions(model: TableModel, { matches, behind, sort }: ListQuery): Conditions {
  if (behind === null) return [matches.where];
  const isInJson = sort.terms.some(({ field }) => field.isJson);
  const { condition } = behind;
  return [
    matches.where,
    isInJson && matches.rule !== null ? behindRule(matches.rule, condition, `${model.sql}.`) : condition,
  ];
}

/** Of each range that lies behind the cursor as much as a page can need, one after the other. */
function walkedPage(model: TableModel, query: ListQuery, { index }: Walk): SqlCondition {
  const { matches, behind, sort, reverse, limit } = query;
  const ranges = behind?.ranges ?? [];
  if (ranges.length <= 1) return page(model, query, index);
  const order = orderBy(sort, { reverse }).sql;
  const part = (range: SqlCondition): string =>
    `SELECT * FROM (SELECT ${model.selectList} FROM ${from(model, index)}${whereSql([matches.where, range])} ORDER BY ${order} LIMIT ${limit})`;
  return {
    sql: `${ranges.map(part).join(" UNION ALL ")} ORDER BY ${order} LIMIT ${limit}`,
    params: ranges.flatMap((range) => paramsOf([matches.where, range])),
  };
}

/** How many there are in the group that the page ends in. null: it does not leave the group of its cursor. */
function lastGroup(model: TableModel, query: ListQuery, { index }: Walk): Steps | null {
  const { matches, behind, sort, reverse, limit, offset } = query;
  const [leading] = sort.terms;
  const [, following] = behind?.ranges ?? [];
  if (leading === undefined || (behind !== null && following === undefined)) return null;
  const column = leading.field.column.sql;
  const direction = (leading.direction === "desc") !== reverse ? "DESC" : "ASC";
  // Where too few follow, this is null, and the last group is that of the nulls.
  const conditions = [matches.where, following ?? null];
  const last = `SELECT ${column} FROM ${from(model, index)}${whereSql(conditions)} ORDER BY ${column} ${direction} LIMIT 1 OFFSET ?`;
  const inGroup = { sql: `${column} IS (${last})`, params: [...paramsOf(conditions), offset + limit - 1] };
  const found = [matches.where, inGroup];
  const rows = `FROM ${from(model, index)}${whereSql(found)}`;
  const params = paramsOf(found);
  return { count: countUpToFew(rows, params), bytes: bytesOf(model.columns.filter(isText), rows, params) };
}

/** The first `limit` of the matches, by id, and nothing else of them. */
export function idsOf(model: TableModel, { where }: Matches, limit: number): SqlCondition {
  return {
    sql: `SELECT "id" FROM ${model.sql}${whereSql([where])} ORDER BY "id" ${limitSql(limit, 0)}`,
    params: where?.params ?? [],
  };
}

type Conditions = readonly (SqlCondition | null)[];

const isPresent = (condition: SqlCondition | null): condition is SqlCondition => condition !== null;

function whereSql(conditions: Conditions): string {
  const present = conditions.filter(isPresent);
  return present.length === 0 ? "" : ` WHERE ${join(present, "AND").sql}`;
}

const paramsOf = (conditions: Conditions): SqlValue[] => conditions.filter(isPresent).flatMap(({ params }) => params);

/** The limit is written out: SQLite prepares a statement anew each time when a limit is bound. */
const limitSql = (limit: number, offset: number): string => `LIMIT ${limit}${offset === 0 ? "" : " OFFSET ?"}`;

const from = (model: TableModel, index: string | null): string =>
  index === null ? model.sql : `${model.sql} INDEXED BY ${quoteIdentifier(index)}`;
