import { quoteIdentifier } from "../../../db/index.ts";
import { type Condition, isLinked } from "../filters/filter.ts";
import type { Sort } from "../filters/sort.ts";
import type { TableIndex, TableModel } from "../model/model.ts";
import { OPERATORS } from "../model/operators.ts";

/** Returns the table, read by an index. */
export const indexedBy = ({ sql }: TableModel, index: string): string => `${sql} INDEXED BY ${quoteIdentifier(index)}`;

const isRange = ({ operator }: Condition): boolean => OPERATORS[operator].bounds.length > 0;
const isLowerBound = ({ operator }: Condition): boolean => OPERATORS[operator].bounds.includes("lower");
const isUpperBound = ({ operator }: Condition): boolean => OPERATORS[operator].bounds.includes("upper");

/**
 * Index that finds matches. `range`: it has exactly the matches next to each other. `value`: it has at most one record for each
 * value of a condition, on which the other conditions are tested.
 */
export interface CoveringIndex {
  name: string;
  /** First column of the index. */
  column: string;
  by: "range" | "value";
}

const chosen = (index: TableIndex | undefined, by: CoveringIndex["by"]): CoveringIndex | null =>
  index === undefined ? null : { name: index.name, column: index.columns[0] ?? "", by };

/**
 * Returns an index that finds the matches of all `conditions` in as many steps as there are matches or compared values: it has
 * them next to each other (equal leading columns, then at most one compared column), or at most one per value. null: there is
 * none.
 */
export function coveringIndex(model: TableModel, conditions: readonly Condition[]): CoveringIndex | null {
  const unique = conditions.find(
    ({ field, ...tested }) => field.column.isUnique && !field.isJson && isOfValues(tested),
  );
  const single = unique?.field.column.name;
  const isOne = ({ columns, isUnique }: TableIndex) => isUnique && columns.length === 1 && columns[0] === single;
  if (single !== undefined) return chosen(model.indexes.find(isOne), "value");
  if (conditions.length === 0 || conditions.some(({ field }) => field.isJson)) return null;
  return chosen(
    model.indexes.find((index) => covers(index, conditions)),
    "range",
  );
}

/**
 * Returns the conditions by which SQLite may enter an index: at most one equality or list, and one bound on either side, of the
 * first column of an index, and one on several references. They take the same time for hidden records as for others.
 */
export function enteringConditions(model: TableModel, conditions: readonly Condition[]): ReadonlySet<Condition> {
  const chosen = new Map<string, Condition>();
  for (const condition of conditions) {
    const { field, operator } = condition;
    if (isLinked(condition)) {
      if (!chosen.has("linked")) chosen.set("linked", condition);
      continue;
    }
    const isFirst = field.name === "id" || model.indexes.some(({ columns }) => columns[0] === field.name);
    const isEqual = operator === "==" || operator === "in";
    if (field.isJson || !isFirst || (!isEqual && !isRange(condition))) continue;
    const sides = isEqual ? ["=="] : OPERATORS[operator].bounds;
    const keys = sides.map((side) => `${side} ${field.name}`);
    if (keys.some((key) => chosen.has(key))) continue;
    for (const key of keys) chosen.set(key, condition);
  }
  return new Set(chosen.values());
}

/** Whether the condition allows at most one record per value. A unique field may be null in any number of records. */
function isOfValues({ operator, value }: Pick<Condition, "operator" | "value">): boolean {
  if (operator === "in") return Array.isArray(value) && !value.includes(null);
  return operator === "==" && value !== null;
}

function covers({ columns }: TableIndex, conditions: readonly Condition[]): boolean {
  let coveredCount = 0;
  for (const column of columns) {
    const own = conditions.filter(({ field }) => field.name === column);
    const isEqual = own.length === 1 && own[0]?.operator === "==";
    if (!isEqual && !isOneRange(own)) break;
    coveredCount += own.length;
    if (!isEqual) break;
  }
  return coveredCount === conditions.length;
}

/** Whether there is at most one bound on either side. */
function isOneRange(conditions: readonly Condition[]): boolean {
  if (conditions.length === 0 || !conditions.every(isRange)) return false;
  return conditions.filter(isLowerBound).length <= 1 && conditions.filter(isUpperBound).length <= 1;
}

/** Index, and the conditions that fix its leading columns. */
export interface FixedPart {
  index: string;
  conditions: readonly Condition[];
}

/** Returns the index of which the conditions fix the most leading columns; null when they fix those of none. */
export function fixedPart(model: TableModel, all: readonly Condition[]): FixedPart | null {
  const equals = new Map(all.filter(isFixing).map((one) => [one.field.name, one]));
  let best: FixedPart | null = null;
  for (const { name, columns } of model.indexes) {
    const free = columns.findIndex((column) => !equals.has(column));
    const conditions = columns.slice(0, free < 0 ? columns.length : free).flatMap((column) => equals.get(column) ?? []);
    if (conditions.length > (best?.conditions.length ?? 0)) best = { index: name, conditions };
  }
  return best;
}

const isFixing = (condition: Condition): boolean =>
  condition.operator === "==" && !condition.field.isJson && !isLinked(condition);

/** Index in the requested order: the matches of `entering` follow one another along it, a record at a time. */
export interface Walk {
  index: string;
  /** Conditions that fix the leading columns, and bounds on the column that follows. */
  entering: readonly Condition[];
}

/** Returns the walk that most of `conditions` enter; null when no index has the order. */
export function walkOf(model: TableModel, conditions: readonly Condition[], sort: Sort): Walk | null {
  if (sort.terms.some(({ field }) => field.isJson)) return null;
  const plain = conditions.filter(({ field }) => !field.isJson);
  const equals = new Map(plain.filter(({ operator }) => operator === "==").map((one) => [one.field.name, one]));
  let best: Walk | null = null;
  for (const index of model.indexes) {
    const known = index.columns.findIndex((column) => !equals.has(column));
    for (let count = known < 0 ? index.columns.length : known; count >= 0; count--) {
      const columns = index.columns.slice(0, count);
      if (!isInOrder(index, new Set(columns), sort)) continue;
      const leading = columns.flatMap((column) => equals.get(column) ?? []);
      const entering = [...leading, ...boundsOf(plain, sort)];
      if (best === null || entering.length > best.entering.length) best = { index: index.name, entering };
      break;
    }
  }
  return best;
}

/** Returns at most one bound on either side of the first sorted column. */
function boundsOf(conditions: readonly Condition[], { terms }: Sort): Condition[] {
  const own = conditions.filter((one) => one.field.name === terms[0]?.field.name && isRange(one));
  const both = own.find((one) => isLowerBound(one) && isUpperBound(one));
  if (both !== undefined) return [both];
  return [own.find(isLowerBound), own.find(isUpperBound)].filter((one) => one !== undefined);
}

/** Whether the index has the order of the sort behind the columns fixed by equality. */
function isInOrder({ columns, isUnique }: TableIndex, equal: ReadonlySet<string>, { terms }: Sort): boolean {
  const rest = columns.slice(equal.size);
  for (const [position, { field, direction }] of terms.entries()) {
    if (position === rest.length) {
      // All columns of a unique index together are unique, so the remaining terms have no effect.
      return isUnique && terms.slice(0, position).every((term) => !term.field.column.isNullable);
    }
    if (field.name !== rest[position] || direction !== terms[0]?.direction) return false;
  }
  return true;
}
