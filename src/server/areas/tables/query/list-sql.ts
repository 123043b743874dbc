import type { SqlValue } from "../../../db/index.ts";
import type { AreaValues } from "../filters/areas.ts";
import { behindRule, join, type SqlCondition } from "../filters/filter-sql.ts";
import { areaCost, type ReadCost, sortedCost } from "../filters/read-cost.ts";
import { type Beyond, orderBy, type Sort } from "../filters/sort.ts";
import { CANDIDATES_MAX, QUICK_INDEX_ROWS_MAX, QUICK_STEPS_MAX } from "../limits.ts";
import type { Column, TableModel } from "../model/model.ts";
import { indexedBy } from "./index-choice.ts";
import { type IndexWalk, limitSql, ROW, recordsAt, sizeOf, testedWalk } from "./index-walk.ts";
import type { Matches, Path } from "./matches.ts";
import { type NearWalk, nearestOfAll, nearWalk } from "./nearest.ts";

export interface ListQuery {
  /** Columns read of each record. */
  columns: readonly Column[];
  matches: Matches;
  /** Position where the page begins, in cursor mode; else null. */
  behind: Beyond | null;
  sort: Sort;
  /** Whether the order is reversed. */
  reverse: boolean;
  limit: number;
  /** Number of records to skip, or its slot; 0 for none. */
  offset: SqlValue;
  /** Most records that requests of this shape skip. */
  offsetMax: number;
  /** Order by distance, in place of the sort; null for none. `isWalked`: whether the nearest may be looked for on the main thread. */
  near: { column: Column; area: AreaValues; isWalked: boolean } | null;
  /** Index in the requested order that can be entered where the page begins; null when there is none. */
  path: Path | null;
  isTotalWanted: boolean;
}

/** Statements of a list, prepared once for all requests of its shape. */
export interface PreparedList {
  /** Columns read by the statements, in this order. */
  columns: readonly Column[];
  page: SqlCondition;
  /** Total; null when none is wanted. `sql` null: the row count of the table. */
  total: { sql: SqlCondition | null } | null;
  /** Statement for few matches, which finds them by their index and sorts them. null: no index does. */
  ofFew: FewMatches | null;
  /** Reads the page along an index in the requested order; null when there is none, or too many records are examined. */
  walk: IndexWalk | null;
  /** Looks for the nearest records; null where the list is not ordered by distance, or too many are examined. */
  near: NearWalk | null;
  /** Cost without an index. */
  cost: ReadCost;
  /** Records of the page. */
  limit: number;
}

/** Statements that tell whether candidates are few and small enough. */
export interface CandidateBounds {
  /** Counts them up to a limit. */
  count: SqlCondition;
  /** Sums their bytes. */
  bytes: SqlCondition;
}

export interface FewMatches {
  /** Bounds of the records among which the matches are; null where an index has matches only. */
  candidates: CandidateBounds | null;
  /** Whether an index in the requested order is tried first, as the matches may be a small part of the candidates. */
  isBehindWalk: boolean;
  /** Counts the matches up to a limit. */
  count: SqlCondition;
  /** Whether the values of a condition bound the number of matches, so that they need not be counted first. */
  isBounded: boolean;
  /** Bytes of the values by which the matches are sorted; null when all are numbers and times, or nothing is sorted. */
  bytes: SqlCondition | null;
  page: SqlCondition;
}

/** Statements of a count, prepared once for all requests of its shape. */
export interface PreparedCount {
  /** Counts the matches; null when the total is the row count of the table. */
  total: SqlCondition | null;
  /** Counts few matches by their index; null when none has them next to each other. */
  few: (Pick<FewMatches, "candidates" | "count"> & { size: SqlCondition }) | null;
  /** Whether one index alone tells the total. */
  isInIndex: boolean;
  cost: ReadCost;
}

export function prepareList(model: TableModel, query: ListQuery): PreparedList {
  if (query.near !== null) return prepareNear(model, { ...query, near: query.near, offset: query.offsetMax });
  const { matches, isTotalWanted, path, limit, offsetMax } = query;
  const isExact = path !== null && path.tested === null;
  const page = isExact ? walkedPage(model, query, path.index) : pageBy(model, query, null);
  const exactWalk = offsetMax <= QUICK_INDEX_ROWS_MAX ? { ranges: [{ page, rest: null }], limit } : null;
  return {
    columns: query.columns,
    page,
    total: isTotalWanted ? { sql: countOf(model, matches) } : null,
    ofFew: fewOf(model, query),
    near: null,
    walk: isExact ? exactWalk : path === null ? null : testedWalk(model, query, path),
    cost: sortedCost(matches.cost, query.sort, offsetMax + limit),
    limit,
  };
}

type NearQuery = ListQuery & { near: NonNullable<ListQuery["near"]>; offset: number };

function prepareNear(model: TableModel, query: NearQuery): PreparedList {
  const { matches, columns, isTotalWanted, near, limit, offset } = query;
  return {
    columns,
    page: nearestOfAll(model, query),
    total: isTotalWanted ? { sql: countOf(model, matches) } : null,
    ofFew: null,
    near: near.isWalked ? nearWalk(model, query) : null,
    walk: null,
    cost: areaCost(sortedCost(matches.cost, query.sort, offset + limit)),
    limit,
  };
}

export const prepareCount = (model: TableModel, matches: Matches): PreparedCount => ({
  total: countOf(model, matches),
  few: countOfFew(model, matches),
  isInIndex: matches.index?.by === "range",
  cost: matches.cost,
});

function countOf(model: TableModel, { where, index }: Matches): SqlCondition | null {
  if (where === null)
    return model.view === null ? null : { sql: `${model.source}SELECT count(*) FROM ${model.sql}`, params: [] };
  const source = from(model, index?.by === "range" ? index.name : null);
  return { sql: `${model.source}SELECT count(*) FROM ${source}${whereSql([where])}`, params: where.params };
}

/** Returns the statements that count few matches by an index, or among what an R-tree finds; null when neither finds them. */
function countOfFew(model: TableModel, { where: all, index, candidates }: Matches): PreparedCount["few"] {
  const where = index === null ? (candidates?.where ?? null) : all;
  if (where === null) return null;
  const matching = `FROM ${from(model, index?.name ?? BY_ROW)}${whereSql([where])}`;
  return {
    candidates: index === null && candidates !== null ? boundsOf(model, candidates.rows) : null,
    count: { sql: `SELECT count(*) FROM (SELECT 1 ${matching} LIMIT ${QUICK_STEPS_MAX + 1})`, params: where.params },
    size: { sql: `SELECT sum(${sizeOf(model)}) ${matching}`, params: where.params },
  };
}

const boundsOf = (model: TableModel, { sql, params }: SqlCondition): CandidateBounds => ({
  count: { sql: `SELECT count(*) FROM (SELECT 1 FROM (${sql}) LIMIT ${CANDIDATES_MAX + 1})`, params },
  bytes: {
    sql: `SELECT sum(${sizeOf(model)}) FROM (${sql}) AS "_platform_candidates" CROSS JOIN ${model.sql} ON ${model.sql}.rowid = "_platform_candidates"."id"`,
    params,
  },
});

function fewOf(model: TableModel, query: ListQuery): FewMatches | null {
  const { matches, sort } = query;
  const counted = countOfFew(model, matches);
  if (counted === null) return null;
  if (matches.index === null && matches.candidates !== null) {
    const { where, by } = matches.candidates;
    const page = sortedPage(model, { ...query, matches: { ...matches, where } }, BY_ROW);
    return { ...counted, isBehindWalk: by === "part", isBounded: true, bytes: null, page };
  }
  if (matches.index === null) return null;
  const { name, column, by } = matches.index;
  const isBounded = by === "value";
  // SQLite visits the values of `in` in their order.
  if (isBounded && sort.terms[0]?.field.name === column) {
    return { ...counted, isBehindWalk: false, isBounded, bytes: null, page: pageBy(model, query, name) };
  }
  const bytes = sortedBytes(model, query, name);
  return { ...counted, isBehindWalk: false, isBounded, bytes, page: sortedPage(model, query, name) };
}

const selected = ({ columns }: ListQuery): string => columns.map(({ sql }) => sql).join(", ");

const isText = ({ type }: Column): boolean =>
  !["number", "integer", "boolean", "date", "datetime", "geo"].includes(type);

/** Returns the statement for the bytes of the sorted fields whose size varies; null when all are numbers and times. */
function sortedBytes(model: TableModel, { matches: { where }, sort }: ListQuery, index: string): SqlCondition | null {
  const texts = sort.terms.map(({ field }) => field.column).filter((column) => column.name !== "id" && isText(column));
  if (texts.length === 0) return null;
  const sum = texts.map(({ sql }) => `ifnull(octet_length(${sql}), 0)`).join(" + ");
  return { sql: `SELECT sum(${sum}) FROM ${from(model, index)}${whereSql([where])}`, params: where?.params ?? [] };
}

/** Returns a page that sorts by the fields of the sort only, and reads only the records of the page. */
function sortedPage(model: TableModel, query: ListQuery, index: string): SqlCondition {
  const { sort, reverse, limit, offset } = query;
  const order = orderBy(sort, { reverse });
  const conditions = pageConditions(model, query);
  const found = `SELECT "id" FROM ${from(model, index)}${whereSql(conditions)} ORDER BY ${order.sql} ${limitSql(limit, offset)}`;
  return {
    sql: `SELECT ${selected(query)} FROM ${model.sql} WHERE "id" IN (${found}) ORDER BY ${order.sql}`,
    params: [...paramsOf(conditions), ...order.params, ...(offset === 0 ? [] : [offset]), ...order.params],
  };
}

function pageBy(model: TableModel, query: ListQuery, index: string | null): SqlCondition {
  const { sort, reverse, limit, offset } = query;
  const order = orderBy(sort, { reverse });
  const conditions = pageConditions(model, query);
  return {
    sql: `${model.source}SELECT ${selected(query)} FROM ${from(model, index)}${whereSql(conditions)} ORDER BY ${order.sql} ${limitSql(limit, offset)}`,
    params: [...paramsOf(conditions), ...order.params, ...(offset === 0 ? [] : [offset])],
  };
}

/** Returns the conditions of a page. JSON values of a cursor are compared after the rule, like the caller's conditions. */
function pageConditions(model: TableModel, { matches, behind, sort }: ListQuery): Conditions {
  if (behind === null) return [matches.where];
  const isInJson = sort.terms.some(({ field }) => field.isJson);
  const { condition } = behind;
  return [
    matches.where,
    isInJson && matches.rule !== null ? behindRule(matches.rule, condition, `${model.sql}.`) : condition,
  ];
}

/** Returns a page along an index that has exactly the matches, in order; after a cursor, one page per range. */
function walkedPage(model: TableModel, query: ListQuery, index: string): SqlCondition {
  const { matches, behind, sort, reverse, limit, offset } = query;
  const order = orderBy(sort, { reverse }).sql;
  const ranges = behind?.ranges ?? [];
  if (ranges.length > 1) {
    const part = (range: SqlCondition): string =>
      `SELECT * FROM (SELECT ${selected(query)} FROM ${from(model, index)}${whereSql([matches.where, range])} ORDER BY ${order} LIMIT ${limit})`;
    return {
      sql: `${ranges.map(part).join(" UNION ALL ")} ORDER BY ${order} LIMIT ${limit}`,
      params: ranges.flatMap((range) => paramsOf([matches.where, range])),
    };
  }
  if (offset === 0) return pageBy(model, query, index);
  const places = `SELECT rowid AS ${ROW} FROM ${from(model, index)}${whereSql([matches.where])} ORDER BY ${order} ${limitSql(limit, offset)}`;
  const columns = query.columns.map(({ sql }) => `${model.sql}.${sql}`).join(", ");
  return { sql: recordsAt(model, columns, places), params: [...paramsOf([matches.where]), offset] };
}

/** Returns the statement for the first `limit` matches, ordered by id or by `sort`. */
export function firstOf(model: TableModel, { where }: Matches, limit: number, sort?: Sort): SqlCondition {
  const alias = `${model.sql}.`;
  const order = sort === undefined ? { sql: `${alias}"id"`, params: [] } : orderBy(sort, { reverse: false, alias });
  return {
    sql: `SELECT ${model.selectList} FROM ${model.sql}${whereSql([where])} ORDER BY ${order.sql} ${limitSql(limit, 0)}`,
    params: [...(where?.params ?? []), ...order.params],
  };
}

/** Returns the statement for the ids of the first `limit` matches, ordered by id. */
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

/** Stands in place of an index: records are found by their row ids alone. */
const BY_ROW = "rowid";

function from(model: TableModel, index: string | null): string {
  if (index === BY_ROW) return `${model.sql} NOT INDEXED`;
  return index === null ? model.sql : indexedBy(model, index);
}
