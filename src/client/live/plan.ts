import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { type CommonCondition, matchesCommon } from "../../kernel/records/filter-common.ts";
import { compareRecords, type OrderTerm } from "../../kernel/records/order.ts";
import { elementsOf, listParameters } from "../../kernel/records/query.ts";
import { valueAt } from "../../kernel/records/value-path.ts";
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
  subscription: { readonly key: string; readonly channel: string; readonly filters: object };
  readonly limit: number;
  readonly spare: number;
  /** Parameters of its lists, without `limit` and `after`. */
  parameters: ReturnType<typeof listParameters>;
  /** Whether it has all that it needs. Before `special-queries.ts` has completed it, no record matches it. */
  isComplete: boolean;
  compare(left: JsonObject, right: JsonObject): number;
  /** Returns whether a record of the subscription belongs to the query. */
  belongs(record: JsonObject): boolean;
  /**
   * Returns whether a record matches all conditions of the query. What nobody knows here, relations, `shown` decides: the record as the
   * query has it from the server, if it has.
   */
  matches(record: JsonObject, shown?: JsonObject | null): boolean;
  /** Returns the members of a record that are kept: those shown, compared or sorted by. */
  kept(record: JsonObject): JsonObject;
  /** Returns the members of a record that are shown. */
  shown(record: JsonObject): JsonObject;
  /** Returns the cursor of the page after an answer; null: there is none. */
  cursorOf(answer: ListAnswer): string | null;
}

export interface ListAnswer {
  readonly hasMore: boolean;
  readonly items: readonly JsonObject[];
  readonly cursor: string | null;
  readonly total: number | null;
}

export const tableKey = ({ namespace, instance, table }: TableAddress): string =>
  JSON.stringify([namespace, instance, table]);

export function planOf(query: QueryDescription): Plan {
  const { namespace, instance, table, sort, near, fields } = query;
  const isSearch = query.search !== undefined;
  const limit = Math.min(query.limit ?? (isSearch ? SEARCH_RESULTS : RECORDS_MAX), RECORDS_MAX);
  const channel = ["realtime", namespace, ...(instance === null ? [] : [instance]), table].join(":");
  const elements = elementsOf(query);
  const isComplete =
    !isSearch && near === undefined && fields === null && isShort(elements) && elements.every(isCommon);
  const conditions = isComplete ? elements.map(conditionOf) : [];
  const terms = termsOf(sort);
  return {
    query,
    key: JSON.stringify([channel, elements, sort, near, limit, fields, query.expand, query.search]),
    path: tablePath(query) + (isSearch ? "/search" : ""),
    isSearch,
    isComplete,
    subscription: subscriptionOf(channel, elements),
    limit,
    spare: Math.max(SPARE_MIN, Math.ceil(limit / SPARE_PARTS)),
    parameters: { ...listParameters(query), ...query.search },
    compare: (left, right) => compareRecords(terms, left, right),
    belongs: () => isComplete,
    matches: (record) =>
      isComplete && conditions.every((one) => matchesCommon(one, valueAt(record, one.field) ?? null)),
    kept: (record) => record,
    shown: (record) => record,
    cursorOf: ({ cursor }) => cursor,
  };
}

export const subscriptionOf = (channel: string, filters: readonly Element[]): Plan["subscription"] => ({
  key: JSON.stringify([channel, filters]),
  channel,
  filters: { filters },
});

/** Whether a subscription takes all elements. */
export const isShort = (elements: readonly Element[]): boolean =>
  elements.length <= CONDITIONS_MAX && JSON.stringify(elements).length < CONDITIONS_LENGTH_MAX;

/** Whether an element is a condition with one of the common operators, and no text that may be an instant, which has several forms. */
const isCommon = (one: Element): one is Condition =>
  isCondition(one) &&
  /^(\W+|(not )?in|contains|startsWith)$/.test(one[1]) &&
  ![one[2]].flat().some((value) => /^\d{4}(-\d\d){2}./.test(String(value)));

const pathOf = (name: string) => ({ keys: name.split(".") });

/** The types of the query's builder, or the server, have checked that values fit operators. */
export const conditionOf = ([field, operator, value]: Condition) =>
  ({ field: pathOf(field), operator, value }) as CommonCondition;

export const isCondition = (one: Element): one is Condition => Array.isArray(one);
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
