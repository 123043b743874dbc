import type { JsonValue } from "../../../../kernel/json/json.ts";
import { primaryKeyIndexName } from "../../../db/index.ts";
import { type Condition, isLinked, type ParsedFilter, relationsIn } from "../filters/filter.ts";
import type { TableIndex, TableModel } from "../model/model.ts";

/** Plan by which an index answers a lookup. */
export interface LookupPlan {
  index: string;
  /** Fields by which the index is entered, each fixed by `==` or `in`; none where it is by several references. */
  entering: readonly string[];
  /** Whether the index has exactly the matches next to each other, ordered by id. */
  isExact: boolean;
}

type Equal = Condition & { operator: "==" | "in" };

const isEqual = (condition: Condition): condition is Equal =>
  !condition.field.isJson && (condition.operator === "==" || condition.operator === "in");

/** Returns the leading columns of the index that are in `equal`. */
function entered({ columns }: TableIndex, equal: ReadonlyMap<string, Equal>): readonly string[] {
  const end = columns.findIndex((column) => !equal.has(column));
  return end === -1 ? columns : columns.slice(0, end);
}

/** Returns the plan for the index that uses most fields of the filter; null when none begins with one of them. */
export function planLookup(model: TableModel, { all: conditions, groups }: ParsedFilter): LookupPlan | null {
  const equal = new Map(conditions.filter(isEqual).map((condition) => [condition.field.name, condition]));
  let best: { index: TableIndex; entering: readonly string[] } | null = null;
  for (const index of model.indexes) {
    const entering = entered(index, equal);
    const isBetter = entering.length > (best?.entering.length ?? 0);
    if (isBetter || (entering.length > 0 && entering.length === best?.entering.length && index.isUnique)) {
      best = { index, entering };
    }
  }
  if (best === null) {
    const byLinks = { index: primaryKeyIndexName(model.name), entering: [], isExact: false };
    return conditions.some(isLinked) ? byLinks : null;
  }
  const { index, entering } = best;
  const rest = index.columns.slice(entering.length);
  const isOrdered = rest.length === 0 ? index.isUnique : rest.length === 1 && rest[0] === "id";
  const isSingle = conditions.every(
    ({ field, operator, value }) => operator === "==" && value !== null && entering.includes(field.name),
  );
  return {
    index: index.name,
    entering,
    isExact: isOrdered && isSingle && conditions.length === entering.length && groups.length === 0,
  };
}

/** Records of a table that have these values. */
export interface RelatedPlace {
  table: string;
  fields: string[];
  values: JsonValue[];
}

/**
 * Returns what the relations of a filter depend on: of each related table the records that meet the conditions without a field of the
 * outer record, as far as these are equalities; else all its records. For a caller that may read some of them, these are the records of
 * its read rule: by a condition of its own, a change would tell what hidden records have.
 */
export function relatedPlaces(filter: ParsedFilter): RelatedPlace[] {
  return [...relationsIn(filter)].flatMap(({ model, filters: [own], readable }) => {
    const shown = readable === null ? { places: [NOWHERE], isExact: true } : placesOf(readable);
    const equal = shown.isExact ? equalitiesOf(own) : NOWHERE;
    return shown.places.map((place) => {
      // The address of an account is not what its changes show.
      const names = [...new Map([...equal, ...place])].filter(([name]) => !(model.isUsers && name === "email"));
      return { table: model.name, fields: names.map(([name]) => name), values: names.map(([, value]) => value) };
    });
  });
}

/** Values by field. */
type Values = ReadonlyMap<string, JsonValue>;

const NOWHERE: Values = new Map();

/** Places that are watched for one relation at most. */
const PLACES_MAX = 64;

/** Returns the values that all matches have. */
function equalitiesOf({ all }: ParsedFilter): Values {
  const equal = all.filter(({ field, operator }) => operator === "==" && !field.isJson);
  return new Map(equal.map(({ field, value }) => [field.name, value as JsonValue]));
}

/** Returns where the records of a read rule are: at one of these places. `isExact`: all records there are its own. */
function placesOf(filter: ParsedFilter): { places: readonly Values[]; isExact: boolean } {
  const { all, groups } = filter;
  const base = equalitiesOf(filter);
  let places: Values[] = [base];
  let handled = base.size;
  const cross = (others: readonly Values[]): void => {
    if (places.length * others.length > PLACES_MAX) return;
    // Nothing is at two places.
    const agree = (one: Values, other: Values) =>
      other.entries().every(([name, value]) => (one.get(name) ?? value) === value);
    places = places.flatMap((one) =>
      others.filter((other) => agree(one, other)).map((other) => new Map([...one, ...other])),
    );
    handled++;
  };
  for (const condition of all) {
    const isList = condition.operator === "in" && !condition.field.isJson && !isLinked(condition);
    if (isList) cross(condition.value.map((value) => new Map([[condition.field.name, value]])));
  }
  let isExact = true;
  for (const group of groups) {
    if (group.kind !== "or" || group.filters.length === 0) continue;
    const alternatives = group.filters.map(placesOf);
    isExact &&= alternatives.every((one) => one.isExact);
    cross(alternatives.flatMap((one) => one.places));
  }
  return { places, isExact: isExact && handled === all.length + groups.length };
}

/** Returns a key that is equal for filters with the same plan. */
export const shapeOf = ({ all, groups }: ParsedFilter): string =>
  [
    ...all.map(({ field, operator, value }) => `${field.name} ${operator}${value === null ? " null" : ""}`),
    // What is in them enters no index.
    ...(groups.length === 0 ? [] : ["("]),
  ].join("\n");

/** Returns the index that would answer a lookup; null when none can, since no condition is on a field that can have one. */
export function missingIndex(conditions: readonly Condition[]): readonly string[] | null {
  const fields = new Set(conditions.filter(isEqual).map(({ field }) => field.name));
  return fields.size === 0 ? null : [...fields];
}

/**
 * Returns what the lookup depends on: fields, and each combination of their values. The fields end with the first that has
 * several values.
 */
export function lookedAt(
  { entering }: LookupPlan,
  conditions: readonly Condition[],
): { fields: readonly string[]; values: JsonValue[][] } {
  const fields: string[] = [];
  const values: JsonValue[] = [];
  for (const name of entering) {
    const condition = conditions.find((one): one is Equal => isEqual(one) && one.field.name === name);
    if (condition === undefined) break;
    fields.push(name);
    if (condition.operator === "in") return { fields, values: condition.value.map((value) => [...values, value]) };
    values.push(condition.value);
  }
  return { fields, values: [values] };
}
