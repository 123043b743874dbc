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

/**
 * Returns what the relations of a filter depend on: of each related table the records that meet the conditions without a field of the
 * outer record, as far as these are equalities; else all its records.
 */
export function relatedPlaces(filter: ParsedFilter): { table: string; fields: string[]; values: JsonValue[] }[] {
  return [...relationsIn(filter)].map(({ model, filters }) => {
    const equal = filters[0].all.filter(({ field, operator }) => operator === "==" && !field.isJson);
    const byField = new Map(equal.map(({ field, value }) => [field.name, value as JsonValue]));
    return { table: model.name, fields: [...byField.keys()], values: [...byField.values()] };
  });
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
