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
  const sent = elementsToSend(elements);
  const whole = filterOf(elements);
  plan.subscription = subscriptionOf(subscription.channel, sent);
  plan.belongs = judging(filterOf(elements.filter((one) => !sent.includes(one))));
  plan.matches = judging(whole);
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
  const sorted = query.sort.map(([field]) => field.split(".", 1)[0] ?? "");
  const kept = new Set([...names, ...namesIn(whole), ...sorted, query.near?.field ?? "id"]);
  plan.kept = (record) => pick(record, kept);
  plan.parameters = listParameters({ ...query, fields: [...kept] });
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

/** Selects as many elements as a subscription takes, equality first, as it excludes most records. */
function elementsToSend(elements: readonly Element[]): Element[] {
  const chosen: Element[] = [];
  const isEquality = (one: Element) => Number(isCondition(one) && one[1] === "==");
  const byUse = elements.toSorted((one, other) => isEquality(other) - isEquality(one));
  for (const element of byUse) if (isShort([...chosen, element])) chosen.push(element);
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

/** Projects a record to the named members. */
const pick = (record: JsonObject, names: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name)));

/** Returns a condition with its instants as the server stores them. The type of a value stays. */
const storedOf = ([field, operator, value]: Condition) =>
  conditionOf([field, operator, asStored(value as JsonValue)]) as MatchCondition;

function filterOf(filter: Conditions<Condition>): MatchFilter {
  // A group alone, or a list.
  const elements = [filter].flat() as readonly Element[];
  return {
    all: elements.filter(isCondition).map(storedOf),
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
