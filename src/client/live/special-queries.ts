import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Conditions, GroupOf } from "../../kernel/records/filter-group.ts";
import { type MatchCondition, type MatchFilter, type MatchGroup, matches } from "../../kernel/records/filter-match.ts";
import { distanceBetween, type GeoPoint } from "../../kernel/records/geo.ts";
import { elementsOf, listParameters } from "../../kernel/records/query.ts";
import type { Runtime } from "../runtime.ts";
import type { Condition, Element } from "../tables/description.ts";
import type { Loading } from "./loading.ts";
import { conditionOf, isCondition, isShort, type Plan, subscriptionOf } from "./plan.ts";

// What few live queries need: searches, lists by distance, some of the fields, groups and rare operators, and instants.

/** Completes the plan of such a query, once. */
export function completePlan(plan: Plan): void {
  const { query, isSearch, subscription } = plan;
  plan.isComplete = true;
  const elements = elementsOf(query);
  plan.subscription = subscriptionOf(subscription.channel, elementsToSend(elements));
  const whole = filterOf(elements);
  /** Names of the fields that are compared with instants. */
  const instants = conditionsIn(whole).flatMap(({ field: { keys }, value }) =>
    keys[1] === undefined && [value].flat().some(isInstant) ? keys : [],
  );
  // Changes that the server has not answered yet may have instants in any form.
  const judging = (filter: MatchFilter) => (record: JsonObject) =>
    matches(filter, {
      ...record,
      ...Object.fromEntries(instants.map((name) => [name, asStored(record[name] ?? null)])),
    });
  const certain = judging(whole);
  // What the server has sent, it has judged.
  plan.belongs = judging(filterOf(elements, true));
  plan.matches = (record, shown) => (shown ? plan.belongs : certain)(record);
  // Results of a search have more members than the fields, and are neither compared nor matched here.
  if (query.fields !== null && !isSearch) showFields(plan, query.fields, whole);
  // More may follow in a search or a list by distance, which have no cursor.
  if (isSearch) {
    plan.cursorOf = ({ items, total }) => ((query.search?.offset ?? 0) + items.length < Number(total) ? "" : null);
  } else if (query.near) {
    sortByDistance(plan, query.near);
  }
}

/** Shows some of the fields. Those that are compared or sorted by are kept. */
function showFields(plan: Plan, fields: readonly string[], whole: MatchFilter): void {
  const { query } = plan;
  const names = new Set(["id", ...fields]);
  plan.shown = once((record) => pick(record, names));
  const compared = conditionsIn(whole).map(({ field }) => field.keys[0]);
  const sorted = query.sort.map(([field]) => field.split(".")[0]);
  const kept = new Set([...names, ...compared, ...sorted, query.near?.field ?? "id"]);
  plan.kept = (record) => pick(record, kept);
  plan.parameters = listParameters({ ...query, fields: [...kept] as string[] });
}

function sortByDistance(plan: Plan, from: GeoPoint & { readonly field: string }): void {
  const { compare, shown } = plan;
  /** Metres from the point; infinite for a record without a point. */
  const away = (record: JsonObject) => {
    const at = record[from.field];
    // The server has validated it.
    return at ? distanceBetween(from, at as GeoPoint) : Infinity;
  };
  plan.compare = (left, right) => away(left) - away(right) || compare(left, right);
  plan.shown = once((record) => {
    const { distance: _, ...others } = shown(record);
    const distance = away(record);
    return distance < Infinity ? { ...others, distance } : others;
  });
  plan.cursorOf = ({ hasMore }) => (hasMore ? "" : null);
}

/**
 * Selects what a subscription takes: all groups, in which may be relations, which the server alone can judge, and as many conditions,
 * equality first, as it excludes most records.
 */
function elementsToSend(elements: readonly Element[]): Element[] {
  const use = (one: Element) => (isCondition(one) ? Number(one[1] === "==") : 2);
  const chosen: Element[] = [];
  for (const element of elements.toSorted((one, other) => use(other) - use(one))) {
    if (use(element) > 1 || isShort([...chosen, element])) chosen.push(element);
  }
  // More than five are one group.
  return chosen[5] ? [{ and: [chosen] }] : chosen;
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

/** Projects a record to the named members. */
const pick = (record: JsonObject, names: ReadonlySet<string | undefined>): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name)));

/** Returns a condition with its instants as the server stores them. The type of a value stays. */
const storedOf = ([field, operator, value]: Condition) =>
  conditionOf([field, operator, asStored(value as JsonValue)]) as MatchCondition;

/** Returns the evaluation's form of a filter. `related`: what its relations say, which the server alone knows. */
function filterOf(filter: Conditions<Condition>, related = false): MatchFilter {
  // A group alone, or a list.
  const elements = [filter].flat() as readonly Element[];
  return {
    all: elements.filter(isCondition).map(storedOf),
    groups: elements.flatMap((one) => (isCondition(one) ? [] : groupOf(one, related))),
  };
}

function groupOf(group: GroupOf<Condition>, related: boolean): MatchGroup {
  // A group has one member: a list of filters, of `not` one filter, and of `some` and `none` what another table has.
  const [kind, inside] = Object.entries(group)[0] as ["not", Conditions<Condition>] | ["or", Conditions<Condition>[]];
  if (kind === "not") return { kind, filters: [filterOf(inside, !related)] };
  if (Array.isArray(inside)) return { kind, filters: inside.map((one) => filterOf(one, related)) };
  return { kind: related ? "and" : "or", filters: [] };
}

/** Returns the conditions of a filter, those inside of its groups too. */
const conditionsIn = ({ all, groups }: MatchFilter): MatchCondition[] => [
  ...all,
  ...groups.flatMap(({ filters }) => filters.flatMap(conditionsIn)),
];

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
  typeof value === "string" && /^\d{4}(-\d\d){2}[T ]\d\d:\d.*(Z|[+-]\d\d:?\d\d)$/i.test(value);

/** Delays before a search is repeated after a change. The last one is for long texts, which are indexed later. */
const REPEAT_AFTER_MS = [300, 5_000];

/** Repetitions of a search. */
export interface Repeats {
  /** Repeats the search after a while. */
  changed(): void;
  /** Continues after the answer of a request, which no repetition overtakes. */
  loaded(): void;
  stop(): void;
}

export function createRepeats(runtime: Runtime, loading: Loading, repeat: () => void): Repeats {
  /** The next of the delays; beyond them: the search is not repeated. */
  let next = REPEAT_AFTER_MS.length;
  let cancel = () => {};
  const later = () => {
    const waitMs = REPEAT_AFTER_MS[next];
    if (waitMs === undefined || loading.isBusy) return;
    cancel();
    cancel = runtime.after(waitMs, () => {
      next++;
      repeat();
    });
  };
  return {
    changed() {
      // The first repetition is not put off: it comes while changes go on.
      if (next === 0) return;
      next = 0;
      later();
    },
    loaded: later,
    stop: () => cancel(),
  };
}
