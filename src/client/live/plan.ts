import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Conditions, GroupOf } from "../../kernel/records/filter-group.ts";
import { type MatchCondition, type MatchFilter, type MatchGroup, matches } from "../../kernel/records/filter-match.ts";
import { distanceBetween, type GeoPoint } from "../../kernel/records/geo.ts";
import { compareRecords, type OrderTerm } from "../../kernel/records/order.ts";
import { elementsOf, listParameters } from "../../kernel/records/query.ts";
import {
  type Condition,
  type Element,
  type QueryDescription,
  type TableAddress,
  tablePath,
} from "../tables/description.ts";

/** Maximum number of records, and default for a query without a limit: the longest page of a list. */
export const RECORDS_MAX = 1_000;

/** Fraction of the limit that is loaded beyond it, so that a window that loses records is refilled at once: a tenth. */
const SPARE_PARTS = 10;
const SPARE_MIN = 3;
/** Default limit of a search, as the server has it. */
const SEARCH_RESULTS = 100;
/** Number of conditions that a subscription takes; the filter length stays below that from which the server meters messages. */
const CONDITIONS_MAX = 5;
const CONDITIONS_LENGTH_MAX = 3_000;

/** Plan of how a query is kept up to date. */
export interface Plan {
  readonly query: QueryDescription;
  /** Key, equal for equal queries. */
  readonly key: string;
  readonly path: string;
  /** Whether the server alone knows which records belong to the query, and their order. */
  readonly isSearch: boolean;
  /** Subscription of the query. Queries with equal subscriptions share it. */
  readonly subscription: { readonly key: string; readonly channel: string; readonly filters: object };
  readonly limit: number;
  readonly spare: number;
  /** Parameters of its lists, without `limit` and `after`. */
  readonly parameters: ReturnType<typeof listParameters>;
  compare(left: JsonObject, right: JsonObject): number;
  /** Returns whether a record of the subscription belongs to the query. */
  belongs(record: JsonObject): boolean;
  /** Returns whether a record matches all conditions of the query. */
  matches(record: JsonObject): boolean;
  /** Returns the members of a record that are kept: those shown, compared or sorted by. */
  kept(record: JsonObject): JsonObject;
  /** Returns the members of a record that are shown. */
  shown(record: JsonObject): JsonObject;
}

export const tableKey = ({ namespace, instance, table }: TableAddress): string =>
  JSON.stringify([namespace, instance, table]);

export function planOf(query: QueryDescription): Plan {
  const { namespace, instance, table, sort, near } = query;
  const isSearch = query.search !== undefined;
  const limit = Math.min(query.limit ?? (isSearch ? SEARCH_RESULTS : RECORDS_MAX), RECORDS_MAX);
  const channel = ["realtime", namespace, ...(instance === null ? [] : [instance]), table].join(":");
  const elements = elementsOf(query);
  const sent = elementsToSend(elements);
  const judged = filterOf(elements.filter((one) => !sent.includes(one)));
  const whole = filterOf(elements);
  const terms = termsOf(sort);
  const kept =
    query.fields === null || isSearch
      ? null
      : keptFields(whole, terms, [...query.fields, ...(near ? [near.field] : [])]);
  const shown = new Set(["id", ...(query.fields ?? [])]);
  /** Metres from the point; infinite for a record without a point. */
  const away = (record: JsonObject) => {
    const at = near && record[near.field];
    // The server has validated it.
    return near && at ? distanceBetween(near, at as GeoPoint) : Infinity;
  };
  const shownOf = (record: JsonObject) => {
    const found = query.fields === null ? record : pick(record, shown);
    if (!near) return found;
    const { distance: _, ...others } = found;
    const distance = away(record);
    return distance < Infinity ? { ...others, distance } : others;
  };
  const key = JSON.stringify([channel, elements, sort, near, limit, query.fields, query.expand, query.search]);
  return {
    query,
    key,
    path: tablePath(query) + (isSearch ? "/search" : ""),
    isSearch,
    subscription: { key: JSON.stringify([channel, sent]), channel, filters: { filters: sent } },
    limit,
    spare: Math.max(SPARE_MIN, Math.ceil(limit / SPARE_PARTS)),
    parameters: { ...listParameters(kept === null ? query : { ...query, fields: [...kept] }), ...query.search },
    compare: (left, right) => (near && away(left) - away(right)) || compareRecords(terms, left, right),
    belongs: judging(judged),
    matches: judging(whole),
    kept: kept === null ? (record) => record : (record) => pick(record, kept),
    shown: kept === null && !near ? (record) => record : once(shownOf),
  };
}

/** Selects as many elements as a subscription takes, equality first, as it excludes most records. */
function elementsToSend(elements: readonly Element[]): Element[] {
  const chosen: Element[] = [];
  let lengthLeft = CONDITIONS_LENGTH_MAX;
  const isEquality = (one: Element) => Number(isCondition(one) && one[1] === "==");
  const byUse = elements.toSorted((one, other) => isEquality(other) - isEquality(one));
  for (const element of byUse) {
    const { length } = JSON.stringify(element);
    if (chosen.length === CONDITIONS_MAX || length > lengthLeft) continue;
    lengthLeft -= length;
    chosen.push(element);
  }
  return chosen;
}

/** Memoizes the projection of each record. */
function once(project: (record: JsonObject) => JsonObject): (record: JsonObject) => JsonObject {
  const known = new WeakMap<JsonObject, JsonObject>();
  return (record) => {
    const projected = known.get(record) ?? project(record);
    known.set(record, projected);
    return projected;
  };
}

const pathOf = (name: string) => ({ keys: name.split(".") });

/**
 * Returns a value with instants in the form that the server stores. A client does not know the types of fields: it goes by the form of
 * texts.
 */
const asStored = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(asStored);
  const time = Date.parse(isInstant(value) ? value.toUpperCase().replace(" ", "T") : "");
  return Number.isNaN(time) ? value : new Date(time).toISOString();
};

const isInstant = (value: JsonValue): value is string =>
  typeof value === "string" && /^\d{4}-\d\d-\d\d[T ]\d\d:\d.*(Z|[+-]\d\d:?\d\d)$/i.test(value);

/** The types of the query's builder, or the server, have checked that values fit operators. */
const conditionOf = ([field, operator, value]: Condition) =>
  ({ field: pathOf(field), operator, value: asStored(value as JsonValue) }) as MatchCondition;

/** Returns the evaluation of a filter. Changes that the server has not answered yet may have instants in any form. */
function judging(filter: MatchFilter): (record: JsonObject) => boolean {
  const instants = instantsIn(filter);
  return (record) => {
    const stored = Object.fromEntries(instants.map((name) => [name, asStored(record[name] ?? null)]));
    return matches(filter, instants.length === 0 ? record : { ...record, ...stored });
  };
}

/** Returns the names of the fields that a filter compares with instants. */
const instantsIn = ({ all, groups }: MatchFilter): string[] => [
  ...all.flatMap(({ field: { keys }, value }) => (keys[1] === undefined && [value].flat().some(isInstant) ? keys : [])),
  ...groups.flatMap(({ filters }) => filters.flatMap(instantsIn)),
];

const isCondition = (one: Element): one is Condition => Array.isArray(one);
const listOf = (filter: Conditions<Condition>): readonly Element[] =>
  (Array.isArray as (one: unknown) => one is readonly Element[])(filter) ? filter : [filter];

function filterOf(filter: Conditions<Condition>): MatchFilter {
  const elements = listOf(filter);
  return {
    all: elements.filter(isCondition).map(conditionOf),
    groups: elements.flatMap((one) => (isCondition(one) ? [] : groupOf(one))),
  };
}

function groupOf(group: GroupOf<Condition>): MatchGroup {
  // A group has one member: a list of filters, or of `not` one filter.
  const [kind, inside] = Object.entries(group)[0] as ["not", Conditions<Condition>] | ["or", Conditions<Condition>[]];
  return { kind, filters: (kind === "not" ? [inside] : inside).map(filterOf) };
}

/** Returns the names of the fields of a filter, those inside of its groups too. */
const namesIn = ({ all, groups }: MatchFilter): string[] => [
  ...all.map(({ field }) => field.keys[0] ?? ""),
  ...groups.flatMap(({ filters }) => filters.flatMap(namesIn)),
];

/**
 * Completes a sort as the server does: a field counts once, terms after the id have no effect, and the id has the direction of
 * the last term.
 */
function termsOf(sort: QueryDescription["sort"]): OrderTerm[] {
  const terms: OrderTerm[] = [];
  const seen = new Set<string>();
  for (const [field, direction] of sort) {
    if (seen.has(field)) continue;
    seen.add(field);
    terms.push({ field: pathOf(field), direction });
    if (field === "id") return terms;
  }
  return [...terms, { field: pathOf("id"), direction: terms.at(-1)?.direction ?? "asc" }];
}

function keptFields(whole: MatchFilter, terms: readonly OrderTerm[], fields: readonly string[]): Set<string> {
  return new Set(["id", ...fields, ...namesIn(whole), ...terms.map(({ field }) => field.keys[0] ?? "")]);
}

export const idOf = (record: JsonObject): string => String(record["id"]);

/** Returns whether two values have equal JSON, in any order of members. */
export function isSame(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((value, index) => isSame(value, right[index]));
  }
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isSame(left[name], right[name]))
  );
}

/** Projects a record to the named members. */
function pick(record: JsonObject, names: ReadonlySet<string>): JsonObject {
  const picked: JsonObject = {};
  for (const name of Object.keys(record)) if (names.has(name)) picked[name] = record[name] ?? null;
  return picked;
}
