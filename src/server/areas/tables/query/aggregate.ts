import { badField, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { AskedGroups } from "../../../../kernel/records/record-query.ts";
import { BUCKET_UNITS, type BucketUnit } from "../../../../kernel/time/buckets.ts";
import { timeZone } from "../../../../kernel/time/time-zone.ts";
import type { TableRecord } from "../../../config/types.ts";
import {
  BUCKET_FUNCTION,
  type DatabaseFile,
  quoteIdentifier,
  type SqlValue,
  type Transaction,
} from "../../../db/index.ts";
import {
  type Condition,
  conditionsIn,
  isHiddenAddress,
  NO_FILTER,
  NO_OWN_ADDRESS,
  type OwnAddress,
  type ParsedFilter,
  type ReadableTables,
} from "../filters/filter.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { AGGREGATE_GROUPS_DEFAULT, AGGREGATE_GROUPS_MAX, AGGREGATE_TERMS_MAX, PAGE_BYTES_MAX } from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, isJsonText, type TableModel } from "../model/model.ts";
import type { AggregateValues, ReadRequest } from "../model/requests.ts";
import type { Table } from "../records/namespaces.ts";
import type { Grant } from "../rules/access.ts";
import { parseFilters } from "./list-query.ts";
import { matchesOf } from "./matches.ts";
import { pagesOf } from "./pages.ts";
import { preparedOf } from "./prepared-reads.ts";
import { notByRecord, type Reads, type Source } from "./reads.ts";

interface Groups {
  groups: TableRecord[];
}

export function createAggregating(deps: { reads: Reads }) {
  return {
    /** Returns counts, sums and extremes of the records that the caller may read. Errors: 401, 403, 400, 408, 413. [TB410] */
    async aggregate(asked: ReadRequest<AggregateValues>, source: Source): Promise<Groups> {
      const { principal } = asked;
      const granted = await deps.reads.grant(principal, source);
      if (granted.kind === "record") throw notByRecord(principal);
      const { table, file } = source;
      const query = asked.query();
      const readable = await deps.reads.readableTables(principal, source, query);
      const request = parseAggregate(table.model, query, readable);
      const terms = [...request.groups, ...request.selected];
      if (file === null) return { groups: overNothing(request) };
      const here = await deps.reads.inTurn(file, () => groupsOfFew(table, file, request, granted));
      if (here !== null) return { groups: here };
      // The rule's filter decides before the caller's conditions are evaluated.
      const { where } = matchesOf(table.model, request.filter, granted);
      const all = [request.filter, granted.kind === "filter" ? granted.filter : NO_FILTER];
      const conditions = all.flatMap((filter) => [...conditionsIn(filter)]);
      const { sql, params } = aggregateSql(table.model, where, request, conditions);
      const names = JSON.stringify(terms.map(({ name }) => name));
      const { rows, isCut } = await file.readPage(sql, params, {
        caller: asked,
        page: { bytesMax: PAGE_BYTES_MAX, rowBytes: names.length + terms.length, jsonColumns: [] },
        decode: (values) => groupOf(terms, values),
      });
      if (isCut) throw tooLarge("The groups are larger than 8 MiB; request fewer, or group by another field");
      return { groups: rows };
    },
  };
}

/** Aggregates on the main thread; null where too many or too large records match, or dates are grouped by a unit. [TB102] */
function groupsOfFew(
  table: Table,
  file: DatabaseFile,
  request: AggregateRequest,
  granted: Grant,
): TableRecord[] | null {
  const isByUnit = request.groups.some((term) => term.kind === "group" && term.unit !== null);
  if (isByUnit || !pagesOf(table).isFew(file, preparedOf(table).count(request.filter, granted))) return null;
  const { where, index, candidates } = matchesOf(table.model, request.filter, granted);
  const among = index === null && candidates !== null ? candidates.where : where;
  return groupsNow(table.model, file, request, { where: among, index: index?.name ?? null });
}

const groupOf = (terms: readonly Term[], values: readonly unknown[]): TableRecord =>
  Object.fromEntries(terms.map((term, place) => [term.name, answered(term, values[place])]));

function answered(term: Term, value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  const isBoolean = term.kind !== "count" && term.column.type === "boolean";
  // Columns of the other types contain text and numbers.
  return isBoolean ? value === 1 : (value as string | number);
}

/** Returns the result for an instance that does not exist: that of a table without records. */
export const overNothing = ({ groups, selected }: AggregateTerms): TableRecord[] =>
  groups.length > 0 ? [] : [Object.fromEntries(selected.map((term) => [term.name, term.kind === "count" ? 0 : null]))];

const FUNCTIONS = ["count", "sum", "avg", "min", "max"] as const;
type AggregateFunction = (typeof FUNCTIONS)[number];

/** Returns the parameters that were given. */
export const valuesOf = ({ select, groupBy, sort, limit }: AskedGroups): AggregateValues => ({
  select,
  ...(groupBy === null ? {} : { groupBy }),
  ...(sort === null ? {} : { sort }),
  ...(limit === undefined ? {} : { limit }),
});

/** Aggregates at once, in a transaction or a lookup. `index`: the one by which the matches are found; null for any. */
export function groupsNow(
  model: TableModel,
  queries: Pick<Transaction, "query">,
  request: AggregateTerms,
  { where, index }: { where: SqlCondition | null; index: string | null },
): TableRecord[] {
  const terms = [...request.groups, ...request.selected];
  const { sql, params } = aggregateSql(model, where, request, [], index);
  return queries
    .query(sql)
    .values(...params)
    .map((values) => groupOf(terms, values));
}

/** Term of a group's value, named as in the request: `status`, `createdAt:day`, `count()`, `sum(points)`. */
export type Term =
  | { kind: "group"; name: string; column: Column; unit: BucketUnit | null }
  | { kind: "count"; name: string }
  | { kind: "value"; name: string; column: Column; calculates: Exclude<AggregateFunction, "count"> };

export interface AggregateTerms {
  groups: readonly Term[];
  selected: readonly Term[];
  sort: readonly { term: Term; direction: "asc" | "desc" }[];
  limit: number;
  timeZone: string;
}

export interface AggregateRequest extends AggregateTerms {
  filter: ParsedFilter;
}

/** Parses an aggregate request. Errors: 400 naming the parameter. [TB410]–[TB414] */
export function parseAggregate(model: TableModel, values: AggregateValues, readable: ReadableTables): AggregateRequest {
  const terms = parseTerms(model, values, readable.own);
  return { ...terms, filter: parseFilters(model, values, readable) };
}

/** Parses an aggregate request without its filter. Errors: as `parseAggregate`; 400 for addresses, where the caller has an own one. */
export function parseTerms(
  model: TableModel,
  values: Omit<AggregateValues, "filter" | "orFilter">,
  own?: OwnAddress,
): AggregateTerms {
  const groups = named("groupBy", values.groupBy, (name) => termOfGroup(model, name));
  const select = values.select === "" ? undefined : values.select;
  const selected = named("select", select ?? "count()", (name) => selectedOf(model, name));
  refuseOwnAddress(model, { groupBy: groups, select: selected }, own);
  const zone = values.timezone ?? "UTC";
  if (timeZone(zone) === null) {
    throw badField("timezone", "invalid_value", `timezone: "${zone}" is not a time zone, such as Europe/Berlin`);
  }
  return {
    groups,
    selected,
    sort: parseSort(values.sort, [...groups, ...selected]),
    limit: Math.min(values.limit ?? AGGREGATE_GROUPS_DEFAULT, AGGREGATE_GROUPS_MAX),
    timeZone: zone,
  };
}

function refuseOwnAddress(
  model: TableModel,
  terms: Record<"groupBy" | "select", readonly Term[]>,
  own: OwnAddress | undefined,
): void {
  if (own === undefined) return;
  for (const parameter of ["groupBy", "select"] as const) {
    if (!terms[parameter].some((term) => term.kind !== "count" && isHiddenAddress(model, term))) continue;
    throw badField(parameter, "invalid_value", `${parameter}: ${NO_OWN_ADDRESS}, and is not aggregated`);
  }
}

/** Returns the terms of a comma-separated list, without duplicates. */
function named(parameter: "select" | "groupBy", text: string | undefined, termOf: (name: string) => Term): Term[] {
  const names = text === undefined || text === "" ? [] : text.split(",").map((name) => name.trim());
  if (names.length > AGGREGATE_TERMS_MAX) {
    const message = `${parameter} takes at most ${AGGREGATE_TERMS_MAX} names, got ${names.length}`;
    throw badField(parameter, "too_long", message);
  }
  return [...new Set(names)].map(termOf);
}

function columnOf(model: TableModel, parameter: "select" | "groupBy", name: string): Column {
  const column = model.byName.get(name);
  if (column === undefined || name === DOCUMENT_COLUMN) {
    const reason = model.isSchemaless ? "is not a declared field" : "is not a field";
    throw badField(parameter, "unknown_field", `${parameter}: ${name} ${reason} of ${model.name}`);
  }
  if (isJsonText(column.type)) {
    throw badField(
      parameter,
      "invalid_type",
      `${parameter}: ${name} is a ${column.type} field, whose values have no order`,
    );
  }
  return column;
}

function termOfGroup(model: TableModel, name: string): Term {
  const [field = "", unitName, ...rest] = name.split(":");
  const column = columnOf(model, "groupBy", field);
  if (unitName === undefined) return { kind: "group", name, column, unit: null };
  const unit = BUCKET_UNITS.find((one) => one === unitName);
  if (unit === undefined || rest.length > 0) {
    const message = `groupBy: "${name}" must be field or field:unit, with one of ${BUCKET_UNITS.join(", ")}`;
    throw badField("groupBy", "invalid_value", message);
  }
  if (column.type !== "datetime" && column.type !== "date") {
    const message = `groupBy: ${field} is of type ${column.type}; units are for date and datetime`;
    throw badField("groupBy", "invalid_type", message);
  }
  if (column.type === "date" && (unit === "minute" || unit === "hour")) {
    throw badField("groupBy", "invalid_value", `groupBy: ${field} is a date, which has no ${unit}`);
  }
  return { kind: "group", name, column, unit };
}

function selectedOf(model: TableModel, name: string): Term {
  const [, called = "", field = ""] = /^(\w+)\((\w*)\)$/.exec(name) ?? [];
  const calculates = FUNCTIONS.find((one) => one === called);
  if (calculates === undefined || (calculates === "count") !== (field === "")) {
    const message = `select: "${name}" is not one of count(), sum(field), avg(field), min(field), max(field)`;
    throw badField("select", "invalid_value", message);
  }
  if (calculates === "count") return { kind: "count", name };
  const column = columnOf(model, "select", field);
  const isNumber = column.type === "number" || column.type === "integer";
  if ((calculates === "sum" || calculates === "avg") && !isNumber) {
    const message = `select: ${name} takes a number or an integer, and ${field} is of type ${column.type}`;
    throw badField("select", "invalid_type", message);
  }
  return { kind: "value", name, column, calculates };
}

function parseSort(text: string | undefined, terms: readonly Term[]): AggregateRequest["sort"] {
  if (text === undefined || text === "") return [];
  const parts = text.split(",");
  if (parts.length > AGGREGATE_TERMS_MAX) {
    throw badField("sort", "too_long", `sort takes at most ${AGGREGATE_TERMS_MAX} names, got ${parts.length}`);
  }
  return parts.map((part) => {
    const wanted = part.trim();
    for (const direction of ["asc", "desc"] as const) {
      const term = terms.find(({ name }) => wanted === name || wanted === `${name}:${direction}`);
      if (term !== undefined) return { term, direction: wanted === term.name ? "asc" : direction };
    }
    const message = `sort: "${wanted}" must be a name of groupBy or select, followed by nothing, :asc or :desc`;
    throw badField("sort", "unknown_field", message);
  });
}

/**
 * Returns the statement, with one row per group: the values of its groups, then the selected ones. Ties of a sort follow in
 * ascending order of the groups, so that the answer is the same each time.
 */
export function aggregateSql(
  model: TableModel,
  where: SqlCondition | null,
  { groups, selected, sort, limit, timeZone }: AggregateTerms,
  conditions: readonly Condition[],
  index: string | null = null,
): SqlCondition {
  const terms = [...groups, ...selected];
  const form = { alias: `${model.sql}.`, timeZone, isCovered: isCovered(model, terms, conditions) };
  const columns = terms.map((term) => termSql(term, form));
  const placeOf = (term: Term): number => terms.indexOf(term) + 1;
  const grouping = groups.map(placeOf).join(", ");
  const ordered = sort.map(({ term, direction }) => `${placeOf(term)} ${direction}`);
  const order = [...ordered, ...groups.map(placeOf)].join(", ");
  return {
    sql:
      `${model.source}SELECT ${columns.map(({ sql }) => sql).join(", ")} FROM ${model.sql}` +
      `${index === null ? "" : ` INDEXED BY ${quoteIdentifier(index)}`}${where === null ? "" : ` WHERE ${where.sql}`}` +
      `${grouping === "" ? "" : ` GROUP BY ${grouping}`}${order === "" ? "" : ` ORDER BY ${order}`} LIMIT ${limit}`,
    params: [...columns.flatMap(({ params }) => params), ...(where?.params ?? [])],
  };
}

/** Whether one index contains everything that the statement reads. */
function isCovered(model: TableModel, terms: readonly Term[], conditions: readonly Condition[]): boolean {
  const read = terms.flatMap((term) => (term.kind === "count" ? [] : [term.column.name]));
  const names = new Set([...read, ...conditions.map(({ field }) => field.column.name)]);
  return model.indexes.some(({ columns }) => [...names].every((name) => columns.includes(name)));
}

interface TermForm {
  alias: string;
  timeZone: string;
  isCovered: boolean;
}

function termSql(term: Term, { alias, timeZone, isCovered }: TermForm): { sql: string; params: SqlValue[] } {
  if (term.kind === "count") return { sql: "count(*)", params: [] };
  const column = `${alias}${term.column.sql}`;
  if (term.kind === "value") return { sql: calculated(term.calculates, column), params: [] };
  // The plus prevents SQLite from reading the records in the order of an index, one by one, when a scan and a sort of the groups
  // take a fourth of the time.
  if (term.unit === null) return { sql: isCovered ? column : `+${column}`, params: [] };
  // A date is the same day everywhere.
  const zone = term.column.type === "date" ? "UTC" : timeZone;
  return { sql: `${BUCKET_FUNCTION}(${column}, ?, ?)`, params: [term.unit, zone] };
}

/**
 * Returns the SQL of a function. `sum` would fail when whole numbers exceed 64 bits; `total` continues with doubles, but is 0
 * over nothing.
 */
const calculated = (name: "sum" | "avg" | "min" | "max", column: string): string =>
  name === "sum" ? `CASE WHEN count(${column}) > 0 THEN total(${column}) END` : `${name}(${column})`;
