import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { type MatchCondition, type MatchFilter, matches } from "../../kernel/records/filter-match.ts";
import { compareRecords, type OrderTerm } from "../../kernel/records/order.ts";
import {
  type Condition,
  listParameters,
  type QueryDescription,
  type TableAddress,
  tablePath,
} from "../tables/description.ts";

/** Maximum number of records, and default for a query without a limit: the longest page of a list. */
export const RECORDS_MAX = 1_000;

/** Fraction of the limit that is loaded beyond it, so that a window that loses records is refilled at once: a tenth. */
const SPARE_PARTS = 10;
const SPARE_MIN = 3;
/** Number of conditions that a subscription takes; the filter length stays below that from which the server meters messages. */
const CONDITIONS_MAX = 5;
const CONDITIONS_LENGTH_MAX = 3_000;

/** Plan of how a query is kept up to date. */
export interface Plan {
  readonly query: QueryDescription;
  /** Key, equal for equal queries. */
  readonly key: string;
  readonly path: string;
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
  const { namespace, instance, table, conditions, or, sort } = query;
  const limit = Math.min(query.limit ?? RECORDS_MAX, RECORDS_MAX);
  const channel = ["realtime", namespace, ...(instance === null ? [] : [instance]), table].join(":");
  const all = conditionsToSend(conditions, CONDITIONS_LENGTH_MAX);
  const any = fitting(or) ? or : [];
  const judged = {
    all: filterOf(conditions.filter((condition) => !all.includes(condition))),
    any: any.length === or.length ? [] : filterOf(or),
  };
  const whole: MatchFilter = { all: filterOf(conditions), any: filterOf(or) };
  const terms = termsOf(sort);
  const kept = query.fields === null ? null : keptFields(query, query.fields);
  const shown = new Set(["id", ...(query.fields ?? [])]);
  const key = JSON.stringify([channel, conditions, or, sort, limit, query.fields, query.expand]);
  return {
    query,
    key,
    path: tablePath(query),
    subscription: { key: JSON.stringify([channel, all, any]), channel, filters: { filters: all, orFilters: any } },
    limit,
    spare: Math.max(SPARE_MIN, Math.ceil(limit / SPARE_PARTS)),
    parameters: listParameters({ ...query, fields: kept === null ? null : [...kept] }),
    compare: (left, right) => compareRecords(terms, left, right),
    belongs: judged.all.length + judged.any.length === 0 ? () => true : (record) => matches(judged, record),
    matches: (record) => matches(whole, record),
    kept: kept === null ? (record) => record : (record) => pick(record, kept),
    shown: kept === null || kept.size === shown.size ? (record) => record : picking(shown),
  };
}

const lengthOf = (value: unknown): number => JSON.stringify(value).length;
const fitting = (conditions: readonly Condition[]): boolean =>
  conditions.length <= CONDITIONS_MAX && lengthOf(conditions) <= CONDITIONS_LENGTH_MAX;

/** Selects as many conditions as a subscription takes, equality first, as it excludes most records. */
function conditionsToSend(conditions: readonly Condition[], lengthMax: number): Condition[] {
  const chosen: Condition[] = [];
  let lengthLeft = lengthMax;
  const byUse = conditions.toSorted((one, other) => Number(other[1] === "==") - Number(one[1] === "=="));
  for (const condition of byUse) {
    const length = lengthOf(condition);
    if (chosen.length === CONDITIONS_MAX || length > lengthLeft) continue;
    lengthLeft -= length;
    chosen.push(condition);
  }
  return chosen;
}

/** Memoizes the projection of each record. */
function picking(names: ReadonlySet<string>): (record: JsonObject) => JsonObject {
  const known = new WeakMap<JsonObject, JsonObject>();
  return (record) => {
    const picked = known.get(record) ?? pick(record, names);
    known.set(record, picked);
    return picked;
  };
}

const pathOf = (name: string) => ({ keys: name.split(".") });

/** The types of the query's builder, or the server, have checked that values fit operators. */
const filterOf = (conditions: readonly Condition[]): MatchCondition[] =>
  conditions.map(([field, operator, value]) => ({ field: pathOf(field), operator, value }) as MatchCondition);

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

function keptFields({ conditions, or, sort }: QueryDescription, fields: readonly string[]): Set<string> {
  const used = [...conditions, ...or, ...sort].map(([field]) => field.split(".", 1)[0] ?? field);
  return new Set(["id", ...fields, ...used]);
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
