import { quoteIdentifier, type SqlValue } from "../../db/index.ts";
import { QUICK_STEPS_MAX } from "../limits.ts";
import type { Column, TableModel } from "../model/model.ts";
import type { ParsedFilter } from "./filter.ts";
import { behindRule, join, type SqlCondition } from "./filter-sql.ts";
import type { Walk } from "./index-choice.ts";
import { type FilteredPath, type FilteredWalk, filteredWalk } from "./pages/filtered-walk.ts";
import { type ReadCost, sortedCost } from "./read-cost.ts";
import { type Beyond, orderBy, type Sort } from "./sort.ts";

/** The condition; null: all records. */
export interface Matches {
  where: SqlCondition | null;
  /** The index that has the matches next to each other; null: none. */
  index: string | null;
  /** The cost of testing each record. */
  cost: ReadCost;
  /** The part of the condition that comes from the read rule. */
  rule: ParsedFilter | null;
}

export interface ListQuery {
  matches: Matches;
  /** Where the page begins, in cursor mode. */
  behind: Beyond | null;
  sort: Sort;
  /** Whether the order is reversed. */
  reverse: boolean;
  limit: number;
  /** The records of the page that have to be the right ones: `limit`, or one less where it only says that there are more. */
  decided: number;
  offset: number;
  walk: Walk | null;
  /** For a list that neither an index nor a walk bounds. */
  filtered: FilteredPath | null;
  isTotalWanted: boolean;
}

/** The statements of a list, made once for all requests of its shape. */
export interface PreparedList {
  /** Those of the request, for the slots of the statements. */
  values: readonly SqlValue[];
  page: SqlCondition;
  /** null: no total is wanted. `sql` null: the total is the row count of the table. */
  total: { sql: SqlCondition | null } | null;
  /** For few matches: finds them by their index and sorts them. */
  ofFew: { count: SqlCondition; bytes: SqlCondition | null; page: SqlCondition } | null;
  /** Reads the page along an index; `steps` counts the rows that it skips, where the page's size does not bound them. */
  walk: { steps: Steps | null } | null;
  /** Tests records along an index; null: no index has the order. */
  filtered: FilteredWalk | null;
  /** Without an index. */
  cost: ReadCost;
  /** The records of the page, and those before it. */
  limit: number;
  offset: number;
}

/** The statements of a count, likewise. */
export interface PreparedCount {
  values: readonly SqlValue[];
  /** null: the row count of the table. */
  total: SqlCondition | null;
  /** Counts few matches by their index; null: none has them next to each other. */
  few: SqlCondition | null;
  cost: ReadCost;
}

const NO_VALUES: readonly SqlValue[] = [];

/** The number of records to be examined, counted up to a limit, and their bytes. */
export interface Steps {
  count: SqlCondition;
  bytes: SqlCondition;
}

export function prepareList(model: TableModel, query: ListQuery): PreparedList {
  const { matches, isTotalWanted, walk } = query;
  const few = countOfFew(model, matches);
  const isShort = query.offset + query.limit <= QUICK_STEPS_MAX;
  return {
    values: NO_VALUES,
    page: walk === null ? page(model, query, null) : walkedPage(model, query, walk),
    total: isTotalWanted ? { sql: countOf(model, matches) } : null,
    ofFew: few === null ? null : { count: few, bytes: sortedBytes(model, query), page: pageOfFew(model, query) },
    walk: walk === null || !isShort ? null : { steps: walk.by === "groups" ? lastGroup(model, query, walk) : null },
    filtered: query.filtered === null ? null : filteredWalk(model, query, query.filtered),
    cost: sortedCost(matches.cost, query.sort, query.offset + query.limit),
    limit: query.limit,
    offset: query.offset,
  };
}

export const prepareCount = (model: TableModel, matches: Matches): PreparedCount => ({
  values: NO_VALUES,
  total: countOf(model, matches),
  few: countOfFew(model, matches),
  cost: matches.cost,
});

const countOf = (model: TableModel, { where }: Matches): SqlCondition | null =>
  where === null ? null : { sql: `SELECT count(*) FROM ${model.sql}${whereSql([where])}`, params: where.params };

/** Counts the matches up to a limit. null: no index has them next to each other. */
function countOfFew(model: TableModel, { where, index }: Matches): SqlCondition | null {
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

/** The sorted fields whose size varies; null: all are numbers and times. */
function sortedBytes(model: TableModel, { matches: { where, index }, sort }: ListQuery): SqlCondition | null {
  const texts = sort.terms.map(({ field }) => field.column).filter((column) => column.name !== "id" && isText(column));
  if (texts.length === 0) return null;
  return bytesOf(texts, `FROM ${from(model, index)}${whereSql([where])}`, where?.params ?? []);
}

/** Sorts by the fields of the sort only, and reads only the records of the page. */
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

/** JSON values of a cursor are compared after the rule, like the caller's conditions. */
function pageConditions(model: TableModel, { matches, behind, sort }: ListQuery): Conditions {
  if (behind === null) return [matches.where];
  const isInJson = sort.terms.some(({ field }) => field.isJson);
  const { condition } = behind;
  return [
    matches.where,
    isInJson && matches.rule !== null ? behindRule(matches.rule, condition, `${model.sql}.`) : condition,
  ];
}

/** Up to one page of each range after the cursor, range by range. */
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

/** The number of records in the group in which the page ends. null: the page stays in the group of its cursor. */
function lastGroup(model: TableModel, query: ListQuery, { index }: Walk): Steps | null {
  const { matches, behind, sort, reverse, limit, offset } = query;
  const [leading] = sort.terms;
  const [, following] = behind?.ranges ?? [];
  if (leading === undefined || (behind !== null && following === undefined)) return null;
  const column = leading.field.column.sql;
  const direction = (leading.direction === "desc") !== reverse ? "DESC" : "ASC";
  // null where fewer records follow; the last group is then that of null.
  const conditions = [matches.where, following ?? null];
  const last = `SELECT ${column} FROM ${from(model, index)}${whereSql(conditions)} ORDER BY ${column} ${direction} LIMIT 1 OFFSET ?`;
  const inGroup = { sql: `${column} IS (${last})`, params: [...paramsOf(conditions), offset + limit - 1] };
  const found = [matches.where, inGroup];
  const rows = `FROM ${from(model, index)}${whereSql(found)}`;
  const params = paramsOf(found);
  return { count: countUpToFew(rows, params), bytes: bytesOf(model.columns.filter(isText), rows, params) };
}

/** The first `limit` matches, ordered by id. */
export function firstOf(model: TableModel, { where }: Matches, limit: number): SqlCondition {
  return {
    sql: `SELECT ${model.selectList} FROM ${model.sql}${whereSql([where])} ORDER BY ${model.sql}."id" ${limitSql(limit, 0)}`,
    params: where?.params ?? [],
  };
}

/** The ids of the first `limit` matches, ordered by id. */
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

/** The limit is part of the SQL text: with a bound limit, SQLite would prepare the statement again for each execution. */
const limitSql = (limit: number, offset: number): string => `LIMIT ${limit}${offset === 0 ? "" : " OFFSET ?"}`;

const from = (model: TableModel, index: string | null): string =>
  index === null ? model.sql : `${model.sql} INDEXED BY ${quoteIdentifier(index)}`;
