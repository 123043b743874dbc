import type { SqlValue } from "../../../db/index.ts";
import type { AreaValues } from "../filters/areas.ts";
import { NO_FILTER, type ParsedFilter } from "../filters/filter.ts";
import { bound, filterToSql, type SqlCondition, VALUE } from "../filters/filter-sql.ts";
import { beyond, type Sort } from "../filters/sort.ts";
import { QUICK_INDEX_ROWS_MAX } from "../limits.ts";
import type { Column, TableModel } from "../model/model.ts";
import { perTable, type ShapeCache } from "../records/namespaces.ts";
import type { Grant } from "../rules/access.ts";
import { isMoreCounted, isTotalWanted, type ListRequest, offsetOf } from "./list-query.ts";
import { firstOf, type PreparedCount, type PreparedList, prepareCount, prepareList } from "./list-sql.ts";
import { matchesOf, mayTakeLong, pathOf } from "./matches.ts";
import { nearValues } from "./near.ts";
import { Shape, Template } from "./shape.ts";

/** Statements of a shape, and the values of this request for their slots. */
export interface Shaped<T> {
  made: T;
  values: readonly SqlValue[];
}

/** Statements of a list, and the number of records that this request skips. */
export type ShapedList = Shaped<PreparedList> & { offset: number };

/** Parts of a request that have slots in its statements. */
interface Parts {
  filter: ParsedFilter;
  grant: Grant;
  /** Values of the cursor, or the number of records to skip. */
  position: readonly SqlValue[];
  /** Values of the order by distance; null for none. */
  area: AreaValues | null;
}

/** Statements of a table, memoised. */
export const preparedOf = perTable(({ model, shapes }) => createPreparedReads(model, shapes));

let tableCount = 0;

export function createPreparedReads(model: TableModel, cache: ShapeCache) {
  const table = `${tableCount++}`;

  /** Returns the cached statements of a shape, or makes them. `length` returns the characters of what `make` returned. */
  const shaped = <T extends object>(
    kind: string,
    parts: Parts,
    make: (parts: Parts) => T,
    length: (made: T) => number,
  ): Shaped<T> => {
    const { key, values } = shapeOf(`${table} ${kind}`, parts);
    // Only this function makes statements of this kind.
    const known = cache.get(key)?.made as T | undefined;
    if (known !== undefined) return { made: known, values };
    const made = make(templateOf(parts));
    cache.set(key, { made, length: length(made) });
    return { made, values };
  };

  return {
    list(request: ListRequest, grant: Grant): ShapedList {
      const { filter, paging, sort, limit } = request;
      const isTotal = isTotalWanted(request, grant);
      const offset = offsetOf(paging);
      const offsetMax = offsetMaxOf(request);
      const isKeyset = paging.mode === "after" || paging.mode === "before";
      const position = isKeyset ? paging.values : offset > 0 ? [offset] : [];
      const columns = columnsOf(model, request, grant);
      const read = columns === model.columns ? "" : columns.map(({ name }) => name).join();
      const kind = `list ${limit} ${paging.mode} ${offsetMax} ${isTotal} ${isMoreCounted(request, grant)} ${sort.key.length} ${sort.key} ${sort.seenBy.length} ${sort.seenBy} ${request.near?.column.sql ?? ""} ${read}`;
      const make = (parts: Parts) => makeList(model, { ...request, columns }, parts);
      const area = request.near === null ? null : nearValues(request.near);
      return { ...shaped(kind, { filter, grant, position, area }, make, lengthOfList), offset };
    },
    count(filter: ParsedFilter, grant: Grant): Shaped<PreparedCount> {
      const make = (parts: Parts) => prepareCount(model, matchesOf(model, parts.filter, parts.grant));
      return shaped("count", { filter, grant, position: [], area: null }, make, lengthOfCount);
    },
    /** Returns the statement for the first `limit` matches, by id or in an order, behind `offset` others. */
    first(filter: ParsedFilter, grant: Grant, limit: number, order?: { sort: Sort; offset: number }): SqlCondition {
      const make = (parts: Parts) => firstOf(model, matchesOf(model, parts.filter, parts.grant), limit, order?.sort);
      const kind = `first ${limit} ${order?.sort.key ?? ""} ${order?.sort.seenBy ?? ""}`;
      const { made, values } = shaped(kind, { filter, grant, position: [], area: null }, make, lengthOf);
      const { sql, params } = bound(made, values);
      return order === undefined ? { sql, params } : { sql: `${sql} OFFSET ?`, params: [...params, order.offset] };
    },
    /**
     * Returns the statement for the record with the value of the first parameter in this unique column, if the grant's filter does
     * not hide it: SQLite evaluates the filter before it reads the other columns, so that a hidden record takes as long as a
     * missing one. [TB118]
     */
    one(column: Column, grant: Grant): SqlCondition {
      const make = (parts: Parts) => oneOf(model, column, parts.grant);
      const { made, values } = shaped(
        `one ${column.name}`,
        { filter: NO_FILTER, grant, position: [], area: null },
        make,
        lengthOf,
      );
      return bound(made, values);
    },
  };
}

function oneOf({ selectList, sql, source }: TableModel, column: Column, grant: Grant): SqlCondition {
  const rule = grant.kind === "filter" ? filterToSql(grant.filter, `${sql}.`) : null;
  const behind = rule === null ? "" : ` AND (${rule.sql})`;
  return {
    sql: `${source}SELECT ${selectList} FROM ${sql} WHERE ${column.sql} = ${VALUE}${behind} LIMIT 1`,
    params: rule?.params ?? [],
  };
}

function shapeOf(kind: string, { filter, grant, position, area }: Parts): Shape {
  const shape = new Shape().add(kind).addScalars(position).addFilter(filter).add(grant.kind);
  if (grant.kind === "filter") shape.addFilter(grant.filter);
  // Last: a search for the nearest records replaces these values by others.
  return area === null ? shape : shape.addArea(area);
}

/** Returns the parts with slots, in the order of `shapeOf`. */
function templateOf({ filter, grant, position, area }: Parts): Parts {
  const template = new Template();
  const slots = template.scalars(position);
  const own = template.filter(filter);
  const granted = grant.kind === "filter" ? { ...grant, filter: template.filter(grant.filter) } : grant;
  return { position: slots, filter: own, grant: granted, area: area === null ? null : template.area(area) };
}

/**
 * Returns the columns of a page. With `fields`: these, and those of its cursor. All when a rule, or `expand`, looks at the
 * records.
 */
function columnsOf(model: TableModel, { fields, expand, sort, near }: ListRequest, grant: Grant): readonly Column[] {
  if (fields === null || expand !== null || grant.kind === "record" || model.isSchemaless) return model.columns;
  const isSorted = (name: string) => sort.terms.some(({ field }) => field.column.name === name);
  return model.columns.filter(
    ({ name }) => name === "id" || fields.has(name) || isSorted(name) || near?.column.name === name,
  );
}

/**
 * Returns the most records that requests of this one's shape skip: at most a fourth more, so that the pages of a list share few shapes.
 * A search for the nearest records has to know how many it skips.
 */
function offsetMaxOf({ paging, near }: ListRequest): number {
  const offset = offsetOf(paging);
  if (near !== null) return offset;
  const step = 2 ** Math.max(0, Math.floor(Math.log2(offset)) - 2);
  const most = Math.ceil(offset / step) * step;
  return offset <= QUICK_INDEX_ROWS_MAX ? Math.min(most, QUICK_INDEX_ROWS_MAX) : most;
}

function makeList(
  model: TableModel,
  request: ListRequest & { columns: readonly Column[] },
  { filter, grant, position, area }: Parts,
): PreparedList {
  const { paging, sort, near, limit, columns } = request;
  const reverse = paging.mode === "before";
  const isKeyset = paging.mode === "after" || paging.mode === "before";
  const behind = isKeyset ? beyond(sort, position, { reverse }) : null;
  // After a cursor, the index must be entered where the page begins.
  const isEntered = behind === null || behind.ranges !== null;
  const path = isEntered && near === null ? pathOf(model, { filter, sort }, grant) : null;
  return prepareList(model, {
    columns,
    matches: matchesOf(model, filter, grant, { isWalk: path !== null && path.tested === null }),
    behind,
    sort,
    near: near === null || area === null ? null : { column: near.column, area, isWalked: !mayTakeLong(filter, grant) },
    reverse,
    limit: isMoreCounted(request, grant) ? limit : limit + 1,
    offset: isKeyset ? 0 : (position[0] ?? 0),
    offsetMax: offsetMaxOf(request),
    path,
    isTotalWanted: isTotalWanted(request, grant),
  });
}

/** Returns the characters of a statement, and of its values' places. */
const lengthOf = (condition: SqlCondition | null | undefined): number =>
  condition === null || condition === undefined ? 0 : condition.sql.length + condition.params.length * SLOT_LENGTH;
const SLOT_LENGTH = 16;

const lengthOfCount = ({ total, few }: PreparedCount): number =>
  lengthOf(total) +
  [few?.count, few?.size, few?.candidates?.count, few?.candidates?.bytes].reduce((sum, one) => sum + lengthOf(one), 0);

function lengthOfList({ page, total, ofFew, near, walk }: PreparedList): number {
  const walked = (walk?.ranges ?? []).flatMap((range) => [range.page, range.rest]);
  const all = [
    page,
    total?.sql,
    ofFew?.candidates?.count,
    ofFew?.candidates?.bytes,
    ofFew?.count,
    ofFew?.bytes,
    ofFew?.page,
    near?.count,
    near?.bytes,
    near?.page,
    near?.pageOfAll,
    ...walked,
  ];
  return all.reduce((sum, condition) => sum + lengthOf(condition), 0);
}
