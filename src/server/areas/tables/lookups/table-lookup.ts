import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import { frozenJson } from "../../../../kernel/json/frozen.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { compareText } from "../../../../kernel/records/text-match.ts";
import type { AnyFilter, Lookup, TableRecord } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import {
  type Condition,
  hasRelations,
  isLinked,
  NO_FILTER,
  type ParsedFilter,
  parseFilter,
} from "../filters/filter.ts";
import { type Form, filterToSql } from "../filters/filter-sql.ts";
import { FILTER_CONDITIONS_MAX, LOOKUP_EXAMINED_MAX, LOOKUP_LIMIT_MAX, LOOKUP_PLANS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { type LookupPlan, lookedAt, missingIndex, planLookup, shapeOf } from "./plan.ts";

/** Source of records: a file, or the transaction of a write. null: the instance does not exist. */
export type Queries = Pick<Transaction, "query"> | null;

/** Session of a table's lookup. */
export interface LookupSource {
  readonly table: Table;
  /** Returns the result for the key, from the cache or from `read`, which also reports what it depends on. */
  once<T>(key: string, read: (queries: Queries) => T): T;
  watched(fields: readonly string[], values: readonly JsonValue[]): void;
  /** Called before a lookup whose filter has relations: its result depends on other tables too. */
  related(filter: ParsedFilter): void;
  took(records: number): void;
}

/** A programming error of a rule. */
export class LookupMistake extends Error {}

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

function parsed(model: TableModel, filter: unknown): ParsedFilter {
  try {
    return parseFilter(model, filter, { name: "lookup", conditionsMax: FILTER_CONDITIONS_MAX, takesRelations: true });
  } catch (cause) {
    // A 400 would blame the request, whose filter this is not.
    throw new LookupMistake(`A lookup of ${model.name} has an invalid filter: ${(cause as Error).message}`);
  }
}

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

function limitOf(options: { limit?: number } | undefined): number {
  const limit = options?.limit ?? LOOKUP_LIMIT_MAX;
  if (Number.isSafeInteger(limit) && limit >= 0) return Math.min(limit, LOOKUP_LIMIT_MAX);
  throw new LookupMistake(`The limit of a lookup must be a whole number, got ${limit}`);
}

/** `Lookup` documents the behaviour of most. */
export interface TableLookup extends Lookup {
  /** Whether a record matches a filter that was parsed before. */
  some(filter: ParsedFilter): boolean;
}

/** Returns the lookup of one table. */
export function createTableLookup(source: LookupSource): TableLookup {
  const { table } = source;
  const { model, store } = table;

  /** Returns the first `limit` matches by id. */
  const find = (filter: AnyFilter, limit: number): readonly TableRecord[] => {
    const quick = quickOf(model, filter);
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
    return source.once(`${limit}: ${JSON.stringify(filter)}`, (queries) => {
      const { fields, values } = lookedAt(plan, wanted.all);
      for (const each of values) source.watched(fields, each);
      const records = queries === null ? [] : read(queries, table, { filter: wanted, plan, limit });
      source.took(records.length);
      return records.map(frozenJson);
    });
  };

  return {
    get(id) {
      if (typeof id !== "string") throw new LookupMistake(`The id of a lookup in ${model.name} must be text`);
      return source.once(`get ${id}`, (queries) => {
        source.watched(["id"], [id]);
        const record = queries === null ? null : store.get(queries, id);
        return record === null ? null : frozenJson(record);
      });
    },
    first: (filter) => find(filter, 1)[0] ?? null,
    some(filter) {
      const plan = planLookup(model, filter);
      if (plan === null) throw new LookupMistake(noIndex(model, filter.all));
      // The statement and its values stand for the filter.
      const { sql, params } = filterToSql(filter, "") ?? { sql: "", params: [] };
      return source.once(`some ${sql} ${JSON.stringify(params)}`, (queries) => {
        const { fields, values } = lookedAt(plan, filter.all);
        for (const each of values) source.watched(fields, each);
        const records = queries === null ? [] : read(queries, table, { filter, plan, limit: 1 });
        return records.length > 0;
      });
    },
    // A copy, since a rule may sort it.
    list: (filter, options) => [...find(filter, limitOf(options))],
    exists(filter) {
      const quick = quickOf(model, filter);
      if (quick === null) return find(filter, 1).length > 0;
      const { point, value } = quick;
      return source.once(`? ${point.field} ${value}`, (queries) => {
        source.watched([point.field], [value]);
        return queries !== null && queries.query(point.exists).get(value) !== null;
      });
    },
  };
}

/** Statements of lookups by one text in an index ordered by id: the most frequent ones. */
interface Point {
  field: string;
  exists: string;
  /** Statement without an order, which takes SQLite a tenth of the time. */
  some: string;
  byId: string;
}

/**
 * Returns a limit of at least `limit`, rounded up so that few statements serve all limits. Part of the text, because with a bound
 * limit SQLite prepares the statement again for each execution.
 */
const limitSql = (limit: number): string => ` LIMIT ${2 ** Math.ceil(Math.log2(limit))}`;

/** Returns the first matches by id. When there are no more than requested, they are sorted here. */
function pointRead(
  queries: NonNullable<Queries>,
  { store }: Table,
  { some, byId }: Point,
  { value, limit }: { value: string; limit: number },
): TableRecord[] {
  // The rows have the table's own columns.
  const rows = (sql: string) => store.codec.fromRows(queries.query(sql).all(value) as never);
  const found = rows(some + limitSql(limit + 1));
  if (found.length > limit) return rows(byId + limitSql(limit)).slice(0, limit);
  return found.length < 2 ? found : found.sort((a, b) => compareText(String(a["id"]), String(b["id"])));
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
    const where = `FROM ${from} WHERE ${column.sql} = ?`;
    made.set(field, {
      field,
      exists: `SELECT 1 ${where} LIMIT 1`,
      some: `SELECT ${model.selectList} ${where}`,
      byId: `SELECT ${model.selectList} ${where} ORDER BY "id"`,
    });
  }
  points.set(model, made);
  return made;
}

/** Returns the point lookup for a filter; null for another form, or an invalid filter. */
function quickOf(model: TableModel, filter: AnyFilter): { point: Point; value: string } | null {
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
}

function read(queries: NonNullable<Queries>, { model, store }: Table, { filter, plan, limit }: Reading): TableRecord[] {
  const from = `${model.sql} INDEXED BY ${quoteIdentifier(plan.index)}`;
  const isByLinks = plan.entering.length === 0;
  const form: Form = { equality: "=", links: isByLinks ? "enter" : "test" };
  const where = (those: ParsedFilter) => filterToSql(those, `${model.sql}.`, form);
  if (!plan.isExact) {
    const all = filter.all.filter((one) =>
      isByLinks ? isLinked(one) : isEntering(plan, one.field.name, one.operator),
    );
    const entering = where({ ...NO_FILTER, all });
    const count = `SELECT count(*) AS "count" FROM (SELECT 1 FROM ${from} WHERE ${entering?.sql ?? "1"} LIMIT ${LOOKUP_EXAMINED_MAX + 1})`;
    const examined = queries.query<{ count: number }>(count).get(...(entering?.params ?? []))?.count ?? 0;
    if (examined > LOOKUP_EXAMINED_MAX) throw new LookupMistake(tooMany(model, filter.all, plan));
    if (examined === 0) return [];
  }
  const all = where(filter);
  const sql = `SELECT ${model.selectList} FROM ${from} WHERE ${all?.sql ?? "1"} ORDER BY ${model.sql}."id"${limitSql(limit)}`;
  // The rows have the table's own columns.
  return store.codec.fromRows(
    queries
      .query(sql)
      .all(...(all?.params ?? []))
      .slice(0, limit) as never,
  );
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
