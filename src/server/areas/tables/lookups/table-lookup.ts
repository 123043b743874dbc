import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { frozenJson } from "../../../../kernel/json/frozen.ts";
import {
  type AskedRecords,
  formerMethods,
  type RecordSource,
  SourceQuery,
} from "../../../../kernel/records/record-query.ts";
import type { Lookup, TableRecord } from "../../../config/types.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import { expandedNow, type FindRelated, readableBy } from "../expand/expanded-now.ts";
import {
  type Condition,
  hasRelations,
  isLinked,
  NO_FILTER,
  type ParsedFilter,
  parseFilter,
} from "../filters/filter.ts";
import { type Form, filterToSql, type SqlCondition, VALUE } from "../filters/filter-sql.ts";
import { orderBy, parseSort, type Sort } from "../filters/sort.ts";
import { FILTER_CONDITIONS_MAX, LOOKUP_EXAMINED_MAX, LOOKUP_PLANS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { groupsNow, overNothing, parseTerms, valuesOf } from "../query/aggregate.ts";
import type { Table } from "../records/namespaces.ts";
import type { LookupSource, Queries } from "./lookup-source.ts";
import { type LookupPlan, lookedAt, missingIndex, planLookup, shapeOf } from "./plan.ts";

/** A programming error of a rule. */
export class LookupMistake extends Error {
  override readonly name = "LookupMistake";
}

/** Plan of a lookup; null when no index answers lookups of this shape. */
interface Planned {
  plan: LookupPlan | null;
}

const plans = new WeakMap<TableModel, BoundedMap<string, Planned>>();

/** Parses and plans a lookup. Errors: a filter that is not valid, or that no index answers. */
function planned(model: TableModel, asked: unknown): { filter: ParsedFilter; plan: LookupPlan } {
  const filter = parsed(model, asked);
  const shape = shapeOf(filter);
  let known = plans.get(model);
  if (known === undefined) {
    known = new BoundedMap(LOOKUP_PLANS_MAX);
    plans.set(model, known);
  }
  let found = known.get(shape);
  if (found === undefined) {
    found = { plan: planLookup(model, filter) };
    known.set(shape, found);
  }
  const { plan } = found;
  if (plan === null) throw new LookupMistake(noIndex(model, filter.all));
  return { filter, plan };
}

const parsed = (model: TableModel, filter: unknown): ParsedFilter =>
  mistaken(model, "filter", () =>
    parseFilter(model, filter, { name: "lookup", conditionsMax: FILTER_CONDITIONS_MAX, takesRelations: true }),
  );

function noIndex(model: TableModel, conditions: readonly Condition[]): string {
  const table = `databases.${model.namespace}.tables.${model.name}`;
  const asked = conditions.length === 0 ? "every record" : conditions.map(({ field }) => field.name).join(", ");
  const fields = missingIndex(conditions);
  const wanted =
    fields === null || model.isSchemaless
      ? "a lookup must name the id or an indexed field with == or in"
      : `declare indexes: [{ fields: ${JSON.stringify(fields)} }]`;
  return `No index of ${table} answers a lookup of ${asked}: ${wanted}`;
}

/** `Lookup` documents the behaviour of most. */
export interface TableLookup extends Lookup {
  /** Whether a record matches a filter that was parsed before. */
  some(filter: ParsedFilter): boolean;
  find: RecordSource["find"];
}

/** Returns the lookup of one table. */
export function createTableLookup(source: LookupSource): TableLookup {
  const records = recordsOf(source);
  const byId = (filter: unknown, limit: number) => records.find({ filter, sort: null, limit, offset: 0 });
  const methods = { ...formerMethods(records, byId, source.say), ...singleOf(source), find: records.find };
  // The types of a query's fields and paths are those of the config.
  return Object.assign(new SourceQuery(records), methods) as unknown as TableLookup;
}

/** Reports what a lookup depends on. */
function watch(source: Pick<LookupSource, "watched">, plan: LookupPlan, filter: ParsedFilter): void {
  const { fields, values } = lookedAt(plan, filter.all);
  for (const each of values) source.watched(fields, each);
}

/** Returns the lookups of one record, and of a filter that was parsed before. */
export function singleOf(source: Pick<LookupSource, "table" | "once" | "watched">): Pick<TableLookup, "get" | "some"> {
  const { table } = source;
  const { model, store } = table;
  return {
    get(id) {
      if (typeof id !== "string") throw new LookupMistake(`The id of a lookup in ${model.name} must be text`);
      return source.once(`get ${id}`, (queries) => {
        source.watched(["id"], [id]);
        const record = queries === null ? null : store.get(queries, id);
        return record === null ? null : frozenJson(record);
      });
    },
    some(filter) {
      const plan = planLookup(model, filter);
      if (plan === null) throw new LookupMistake(noIndex(model, filter.all));
      // The statement and its values stand for the filter.
      const { sql, params } = filterToSql(filter, "") ?? { sql: "", params: [] };
      return source.once(`some ${sql} ${JSON.stringify(params)}`, (queries) => {
        watch(source, plan, filter);
        const reading = { filter, plan, limit: 1, order: null, offset: 0 };
        return queries !== null && read(queries, table, reading).length > 0;
      });
    },
  };
}

/** Returns what the queries of a lookup ask. */
function recordsOf(source: LookupSource): RecordSource {
  const { table } = source;
  const { model } = table;

  const find = ({ filter, sort, limit, offset }: AskedRecords): readonly TableRecord[] => {
    const isById = sort === null && offset === 0;
    const quick = isById ? quickOf(model, filter) : null;
    if (quick !== null) {
      const { point, value } = quick;
      return source.once(`${limit} ${point.field} ${value}`, (queries) => {
        source.watched([point.field], [value]);
        if (queries === null) return [];
        const records = pointRead(queries, table, point, { value, limit });
        source.took(records.length);
        for (const record of records) frozenJson(record);
        return records;
      });
    }
    const { filter: wanted, plan } = planned(model, filter);
    if (hasRelations(wanted)) source.related(wanted);
    const order = isById ? null : mistaken(model, "sort", () => parseSort(model, sort));
    const by = order === null ? "" : ` ${offset} ${order.key}`;
    return source.once(`${limit}${by}: ${JSON.stringify(filter)}`, (queries) => {
      watch(source, plan, wanted);
      const records = queries === null ? [] : read(queries, table, { filter: wanted, plan, limit, order, offset });
      source.took(records.length);
      return records.map(frozenJson);
    });
  };
  const related: FindRelated = (other, filter, limit) =>
    source.lookupOf(other).find({ filter, sort: null, limit, offset: 0 });

  return {
    find,
    exists(filter) {
      const quick = quickOf(model, filter);
      if (quick === null) return find({ filter, sort: null, limit: 1, offset: 0 }).length > 0;
      const { point, value } = quick;
      return source.once(`? ${point.field} ${value}`, (queries) => {
        source.watched([point.field], [value]);
        return queries !== null && queries.query(point.exists).get(value) !== null;
      });
    },
    aggregate(filter, asked) {
      const { filter: wanted, plan } = planned(model, filter);
      if (hasRelations(wanted)) source.related(wanted);
      const request = mistaken(model, "aggregate", () => parseTerms(model, valuesOf(asked)));
      return source.once(`groups ${JSON.stringify(asked)}: ${JSON.stringify(filter)}`, (queries) => {
        watch(source, plan, wanted);
        if (queries === null) return frozenJson(overNothing(request));
        checkExamined(queries, model, wanted, plan);
        const where = whereOf(model, plan, wanted);
        return frozenJson(groupsNow(model, queries, request, { where, index: plan.index }));
      });
    },
    expand: (found, paths) =>
      mistaken(model, "expand", () => expandedNow(model, found, paths, readableBy(related))).map(frozenJson),
    mistake: (_field, message) => new LookupMistake(`A lookup of ${model.name}: ${message}`),
  };
}

/** Statements of lookups by one text in an index ordered by id: the most frequent ones. */
interface Point {
  field: string;
  exists: string;
  byId: string;
}

/**
 * Returns a limit of at least `limit`, rounded up so that few statements serve all limits. Part of the text, because with a bound
 * limit SQLite prepares the statement again for each execution.
 */
const limitSql = (limit: number): string => ` LIMIT ${2 ** Math.ceil(Math.log2(limit))}`;

/** Returns the first matches by id. */
function pointRead(
  queries: NonNullable<Queries>,
  { store }: Table,
  { byId }: Point,
  { value, limit }: { value: string; limit: number },
): TableRecord[] {
  // The rows have the table's own columns.
  const rows = queries.query(byId + limitSql(limit)).all(value) as never;
  return store.codec.fromRows(rows).slice(0, limit);
}

const points = new WeakMap<TableModel, ReadonlyMap<string, Point>>();

function pointsOf(model: TableModel): ReadonlyMap<string, Point> {
  const known = points.get(model);
  if (known !== undefined) return known;
  const made = new Map<string, Point>();
  for (const { name, columns, isUnique } of model.indexes) {
    const [field = "", next] = columns;
    const column = model.byName.get(field);
    const isOrdered = columns.length === 1 ? isUnique : columns.length === 2 && next === "id";
    if (column === undefined || !isOrdered || !["string", "text", "date", "datetime"].includes(column.type)) continue;
    const from = `${model.sql} INDEXED BY ${quoteIdentifier(name)}`;
    const where = `FROM ${from} WHERE ${column.sql} = ${VALUE}`;
    made.set(field, {
      field,
      exists: `SELECT 1 ${where} LIMIT 1`,
      byId: `SELECT ${model.selectList} ${where} ORDER BY "id"`,
    });
  }
  points.set(model, made);
  return made;
}

/** Returns the point lookup for a filter; null for another form, or an invalid filter. */
function quickOf(model: TableModel, filter: unknown): { point: Point; value: string } | null {
  if (!Array.isArray(filter) || filter.length !== 1) return null;
  const [condition]: unknown[] = filter;
  if (!Array.isArray(condition) || condition.length !== 3) return null;
  const [field, operator, value]: unknown[] = condition;
  if (typeof field !== "string" || operator !== "==" || typeof value !== "string" || !value.isWellFormed()) return null;
  const point = pointsOf(model).get(field);
  return point === undefined ? null : { point, value };
}

interface Reading {
  filter: ParsedFilter;
  plan: LookupPlan;
  limit: number;
  /** null: by id. */
  order: Sort | null;
  offset: number;
}

/** Returns the SQL of a filter, or of a part of it, for the plan of its lookup. */
function whereOf(model: TableModel, { entering }: LookupPlan, filter: ParsedFilter): SqlCondition | null {
  const form: Form = { equality: "=", links: entering.length === 0 ? "enter" : "test" };
  return filterToSql(filter, `${model.sql}.`, form);
}

function read(queries: NonNullable<Queries>, { model, store }: Table, reading: Reading): TableRecord[] {
  const { filter, plan, limit, order, offset } = reading;
  // Along an exact index, no more records are read than are found; for another order, or behind others, all are examined.
  if ((!plan.isExact || order !== null) && checkExamined(queries, model, filter, plan) === 0) return [];
  const all = whereOf(model, plan, filter);
  const by =
    order === null
      ? { sql: `${model.sql}."id"`, params: [] }
      : orderBy(order, { reverse: false, alias: `${model.sql}.` });
  const skipped = offset === 0 ? [] : [offset];
  const sql =
    `SELECT ${model.selectList} FROM ${indexed(model, plan)} WHERE ${all?.sql ?? "1"} ORDER BY ${by.sql}` +
    `${limitSql(limit)}${offset === 0 ? "" : " OFFSET ?"}`;
  // The rows have the table's own columns.
  return store.codec.fromRows(
    queries
      .query(sql)
      .all(...(all?.params ?? []), ...by.params, ...skipped)
      .slice(0, limit) as never,
  );
}

const indexed = (model: TableModel, { index }: LookupPlan): string =>
  `${model.sql} INDEXED BY ${quoteIdentifier(index)}`;

/** Returns how many records the index of a lookup leads to. Errors: more than may be examined. */
function checkExamined(
  queries: NonNullable<Queries>,
  model: TableModel,
  filter: ParsedFilter,
  plan: LookupPlan,
): number {
  const isByLinks = plan.entering.length === 0;
  const all = filter.all.filter((one) => (isByLinks ? isLinked(one) : isEntering(plan, one.field.name, one.operator)));
  const entering = whereOf(model, plan, { ...NO_FILTER, all });
  const count = `SELECT count(*) AS "count" FROM (SELECT 1 FROM ${indexed(model, plan)} WHERE ${entering?.sql ?? "1"} LIMIT ${LOOKUP_EXAMINED_MAX + 1})`;
  const examined = queries.query<{ count: number }>(count).get(...(entering?.params ?? []))?.count ?? 0;
  if (examined > LOOKUP_EXAMINED_MAX) throw new LookupMistake(tooMany(model, filter.all, plan));
  return examined;
}

function mistaken<T>(model: TableModel, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    if (!(cause instanceof AppError) || cause.status >= 500) throw cause;
    // A 400 would blame the request, whose filter this is not.
    throw new LookupMistake(`A lookup of ${model.name} has an invalid ${what}: ${cause.message}`);
  }
}

const isEntering = ({ entering }: LookupPlan, name: string, operator: string): boolean =>
  entering.includes(name) && (operator === "==" || operator === "in");

function tooMany(model: TableModel, conditions: readonly Condition[], { entering }: LookupPlan): string {
  const fields = [...new Set([...entering, ...(missingIndex(conditions) ?? [])])];
  return (
    `A lookup of ${model.namespace}.${model.name} would examine more than ${LOOKUP_EXAMINED_MAX} records by ` +
    `${entering.join(", ")}: name more fields with == or in, and declare an index that begins with all of them, such as ` +
    `indexes: [{ fields: ${JSON.stringify(fields)} }]`
  );
}
