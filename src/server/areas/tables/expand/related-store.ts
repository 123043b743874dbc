import type { JsonValue } from "../../../../kernel/json/json.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type DatabaseFile, quoteIdentifier, type ReadCaller, type SqlValue } from "../../../db/index.ts";
import { conditionsIn, NO_FILTER, type ParsedFilter } from "../filters/filter.ts";
import { columnIn, filterToSql, type SqlCondition, scalar, slotCount } from "../filters/filter-sql.ts";
import {
  hasHeavyRelation,
  isHeavy,
  isLight,
  isQuick,
  type ReadCost,
  relatedCost,
  scanCost,
} from "../filters/read-cost.ts";
import { EXPANDED_PER_RECORD_MAX, EXPANDED_RECORDS_MAX, JOINED_VALUES_MAX, QUICK_STEPS_MAX } from "../limits.ts";
import type { Codec, Row } from "../model/codec.ts";
import type { Column, TableModel } from "../model/model.ts";
import { perTable } from "../records/namespaces.ts";
import { pageBounds } from "../records/store.ts";

/** Bytes of records that one statement reads on the main thread: two or three milliseconds with their JSON. */
const QUICK_BYTES = 256 * 1024;
/** Bytes of records that a rule's filter may examine on the main thread. */
const QUICK_STEPS_BYTES = 4 * 1024 * 1024;
/** Values above which the lookup runs in a query process. */
const QUICK_VALUES = 1_000;
/** Estimated bytes of a value other than text, as JSON. */
const VALUE_BYTES = 8;

export interface RelatedRecord {
  record: TableRecord;
  /** Estimated bytes as JSON. */
  bytes: number;
  /** The value by which it was found, where the record refers by several. */
  of?: JsonValue;
}

export interface RelatedPage {
  found: RelatedRecord[];
  /** Whether the page ended early because further records would have made it too large, or were too many. */
  isCut: boolean;
}

/** A referenced value, and the id after which to read the records that refer to it. */
export interface Referred {
  value: JsonValue;
  after: string;
}

interface RelatedQuery {
  column: Column;
  /** Filter of the read rule; null when there is none. */
  rule: ParsedFilter | null;
  caller: ReadCaller | undefined;
}

export const relatedOf = perTable(({ model, store }) => createRelatedStore(model, store.codec));

/**
 * Related records of one table, read by one statement. It runs on the main thread when that takes a few milliseconds at most,
 * else in a query process.
 */
function createRelatedStore(model: TableModel, codec: Codec) {
  const { columns, sql: table } = model;
  const texts = columns.filter(({ type }) => !["number", "integer", "boolean"].includes(type)).map(({ name }) => name);
  const bounds = pageBounds(model);
  const baseBytes = bounds.rowBytes + columns.length * VALUE_BYTES;
  const octets = columns.map(({ sql }) => `ifnull(octet_length(${table}.${sql}), 0)`).join(" + ");

  /** Reads a page on the main thread; null when the records are too large for it. */
  const quick = (file: DatabaseFile, { sql, params }: SqlCondition): RelatedPage | null => {
    const statement = file.query<Row>(sql);
    const tableBytes = file.tableBytes(model.name);
    const isSmall = tableBytes !== null && tableBytes <= QUICK_BYTES;
    const found: RelatedRecord[] = [];
    let total = 0;
    for (const row of isSmall ? statement.all(...params) : statement.iterate(...params)) {
      let bytes = baseBytes;
      for (const text of texts) bytes += lengthOf(row[text]);
      total += bytes;
      if (total > QUICK_BYTES) return null;
      const of = row[TARGET];
      if (of === undefined) found.push({ record: codec.fromRow(row), bytes });
      else {
        delete row[TARGET];
        found.push({ record: codec.fromRow(row), bytes, of: String(of) });
      }
    }
    return { found, isCut: false };
  };
  const decode = (values: unknown[]): RelatedRecord => {
    let bytes = baseBytes;
    for (const value of values) bytes += lengthOf(value);
    const of = values[columns.length];
    return { record: codec.fromValues(values), bytes, ...(of === undefined ? {} : { of: String(of) }) };
  };
  const read = (file: DatabaseFile, statement: SqlCondition, isQuick: boolean, caller: ReadCaller | undefined) => {
    const here = isQuick ? quick(file, statement) : null;
    if (here !== null) return here;
    const long = file.readPage(statement.sql, statement.params, { caller, page: bounds, decode });
    return long.then(({ rows, isCut }) => ({ found: rows, isCut }));
  };
  const isTableQuick = (file: DatabaseFile, cost: ReadCost): boolean => {
    const bytes = file.tableBytes(model.name);
    return bytes !== null && isQuick(cost, file.rowCount(model.name), bytes);
  };

  /** Whether few records refer to the values, and those that a filter examines are small. */
  const isFew = (file: DatabaseFile, found: SqlCondition, rule: ParsedFilter | null): boolean => {
    const bytes = rule === null ? "0" : octets;
    const sql = `SELECT count(*), sum("bytes") FROM (SELECT ${bytes} AS "bytes" FROM ${found.sql} LIMIT ${QUICK_STEPS_MAX + 1})`;
    const [[count, sum] = []] = file.query(sql).values(...found.params);
    return Number(count) <= QUICK_STEPS_MAX && Number(sum) <= QUICK_STEPS_BYTES;
  };

  const joined = createJoins(model);

  return {
    /** Returns the records whose unique `column` has one of `values`. */
    byValue(
      file: DatabaseFile,
      values: readonly JsonValue[],
      { column, rule, caller }: RelatedQuery,
    ): MaybePromise<RelatedPage> {
      const statement =
        values.length <= JOINED_VALUES_MAX ? joined(values, column, rule) : listed(model, values, column, rule);
      const { cost, isRuleHeavy } = costOf(rule, statement);
      const isHere = (values.length <= QUICK_VALUES && isLight(cost) && !isRuleHeavy) || isTableQuick(file, cost);
      return read(file, statement, isHere, caller);
    },
    /**
     * Returns, for each of `referred`, in order, the first records by id whose `column` has its value: one more than are expanded,
     * which shows that there are more.
     */
    referringTo(
      file: DatabaseFile,
      referred: readonly Referred[],
      { column, rule, caller }: RelatedQuery,
    ): MaybePromise<RelatedPage> {
      const { from, key } = referringFrom(model, column, rule);
      const values = columnIn(
        key,
        referred.map(({ value }) => value),
      );
      const { cost, isRuleHeavy } = costOf(rule, values);
      const isHere =
        isTableQuick(file, cost) ||
        (isLight(cost) &&
          !isRuleHeavy &&
          isFew(file, { sql: `${from} WHERE ${values.sql}`, params: values.params }, rule));
      return chain(read(file, referringSql(model, referred, { column, rule }), isHere, caller), (page) =>
        page.found.length > EXPANDED_RECORDS_MAX ? { ...page, isCut: true } : page,
      );
    },
  };
}

function costOf(rule: ParsedFilter | null, { params }: SqlCondition) {
  const conditions = [...conditionsIn(rule ?? NO_FILTER)];
  const related = rule ?? NO_FILTER;
  return {
    cost: relatedCost(scanCost(conditions, params), related),
    isRuleHeavy: conditions.some(isHeavy) || hasHeavyRelation(related),
  };
}

function listed(
  model: TableModel,
  values: readonly JsonValue[],
  column: Column,
  rule: ParsedFilter | null,
): SqlCondition {
  const found = columnIn(column.sql, values);
  const filter = rule === null ? null : filterToSql(rule, `${model.sql}.`);
  const ruled = filter === null ? "" : ` AND (${filter.sql})`;
  return {
    sql: `SELECT ${model.selectList} FROM ${model.sql} WHERE (${found.sql})${ruled}`,
    params: [...found.params, ...(filter?.params ?? [])],
  };
}

/** Returns where the records are found that refer by a column, and its key: an index, or that of several references. */
function referringFrom({ sql: table, indexes }: TableModel, column: Column, rule: ParsedFilter | null) {
  const { links } = column;
  if (links !== null) {
    // The record itself is read for a rule alone.
    const from = rule === null ? links : `${links} CROSS JOIN ${table} ON ${table}."id" = ${links}."id"`;
    return { from, key: `${links}."target"`, id: `${links}."id"` };
  }
  const index = indexes.find(({ columns: [first] }) => first === column.name);
  const from = index === undefined ? table : `${table} INDEXED BY ${quoteIdentifier(index.name)}`;
  return { from, key: column.sql, id: `"id"` };
}

/** Column with the value by which a record was found. */
const TARGET = "_platform_target";

/** Name of the joined values. No table has it: names do not begin with `_platform`. */
const REFERRED = "_platform_referred";
const RECORD = "_platform_record";

/**
 * Returns statements that join few values with the records whose unique column has them. This takes SQLite half the time of a
 * list, for which it makes an index. Values are padded with NULL, which matches nothing.
 */
function createJoins(model: TableModel) {
  const joins = new Map<string, string>();
  return (values: readonly JsonValue[], column: Column, rule: ParsedFilter | null): SqlCondition => {
    const slots = slotCount(values.length);
    const params: SqlValue[] = values.map(scalar);
    while (params.length < slots) params.push(null);
    const key = `${column.name} ${slots}`;
    const join = joins.get(key) ?? joinSql(model, column, slots);
    joins.set(key, join);
    const filter = rule === null ? null : filterToSql(rule, `${model.sql}.`);
    if (filter === null) return { sql: join, params };
    return { sql: `${join} AND (${filter.sql})`, params: [...params, ...filter.params] };
  };
}

function joinSql(model: TableModel, column: Column, slots: number): string {
  const list = model.columns.map(({ sql }) => `${model.sql}.${sql}`).join(", ");
  const values = `VALUES ${Array(slots).fill("(?)").join(", ")}`;
  return `SELECT ${list} FROM (${values}) AS ${REFERRED} CROSS JOIN ${model.sql} WHERE ${model.sql}.${column.sql} = ${REFERRED}.column1`;
}

/**
 * Returns the statement for referring records. The inner query ends after the records of one value, whatever their number, and
 * CROSS JOIN keeps the order of the loops.
 */
function referringSql(
  model: TableModel,
  referred: readonly Referred[],
  { column, rule }: Pick<RelatedQuery, "column" | "rule">,
): SqlCondition {
  const filter = filterToSql(rule ?? NO_FILTER, `${model.sql}.`);
  const { from, key, id } = referringFrom(model, column, rule);
  const own = `${key} = ${REFERRED}.column1 AND ${id} > ${REFERRED}.column2`;
  const ids = `SELECT ${id} FROM ${from} WHERE ${own}${filter === null ? "" : ` AND (${filter.sql})`} ORDER BY ${id} LIMIT ${EXPANDED_PER_RECORD_MAX + 1}`;
  const target = column.links === null ? "" : `, ${REFERRED}.column1 AS ${TARGET}`;
  const list = model.columns.map(({ sql }) => `${RECORD}.${sql}`).join(", ") + target;
  const values = `VALUES ${referred.map(() => "(?, ?)").join(", ")}`;
  return {
    sql: `SELECT ${list} FROM (${values}) AS ${REFERRED} CROSS JOIN ${model.sql} AS ${RECORD} WHERE ${RECORD}."id" IN (${ids}) LIMIT ${EXPANDED_RECORDS_MAX + 1}`,
    params: [...referred.flatMap(({ value, after }) => [scalar(value), after]), ...(filter?.params ?? [])],
  };
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);
