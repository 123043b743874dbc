import type { Condition } from "./filter.ts";
import type { TableIndex, TableModel } from "./model.ts";
import type { Sort } from "./sort.ts";

const RANGES: readonly string[] = [">", ">=", "<", "<="];

/**
 * The index in which what meets all `conditions`, and nothing else, lies side by side: equal in its leading columns, then
 * at most one that is compared. Going through the matches then takes as many steps as there are. null: there is none.
 */
export function coveringIndex(model: TableModel, conditions: readonly Condition[]): string | null {
  if (conditions.length === 0 || conditions.some(({ field }) => field.isJson)) return null;
  const found = model.indexes.find((index) => index.name !== null && covers(index, conditions));
  return found?.name ?? null;
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

/** At most one bound on either side. */
function isOneRange(conditions: readonly Condition[]): boolean {
  if (conditions.length === 0 || !conditions.every(({ operator }) => RANGES.includes(operator))) return false;
  const lower = conditions.filter(({ operator }) => operator.startsWith(">"));
  return lower.length <= 1 && conditions.length - lower.length <= 1;
}

/**
 * A way along an index through the matches in the order wanted. `records`: one by one, so that a page takes as many steps
 * as it has records. `groups`: by the leading term, those that are equal in it in another order than wanted, so that a
 * page takes as many steps more as its last group has records.
 */
export interface Walk {
  /** null: the primary key. */
  index: string | null;
  by: "records" | "groups";
}

/** The leading columns of the index are those that `conditions` hold equal, and then comes the sort. null: there is none. */
export function walkOf(model: TableModel, conditions: readonly Condition[], sort: Sort): Walk | null {
  if (sort.terms.some(({ field }) => field.isJson)) return null;
  if (!conditions.every(({ field, operator }) => operator === "==" && !field.isJson)) return null;
  const equal = new Set(conditions.map(({ field }) => field.name));
  if (equal.size < conditions.length) return null;
  let groups: Walk | null = null;
  for (const index of model.indexes) {
    const by = waysAlong(index, equal, sort);
    if (by === "records") return { index: index.name, by };
    if (by === "groups") groups ??= { index: index.name, by };
  }
  return groups;
}

function waysAlong({ columns, isUnique }: TableIndex, equal: ReadonlySet<string>, { terms }: Sort): Walk["by"] | null {
  if (!columns.slice(0, equal.size).every((column) => equal.has(column))) return null;
  const rest = columns.slice(equal.size);
  const [first] = terms;
  for (const [position, { field, direction }] of terms.entries()) {
    if (position === rest.length) {
      // Behind the last column of a unique index no two are equal that the remaining terms would have to order.
      const isDecided = isUnique && terms.slice(0, position).every((term) => !term.field.column.isNullable);
      return isDecided ? "records" : null;
    }
    if (field.name !== rest[position]) return null;
    if (direction !== first?.direction) return position === 1 && terms.length === 2 ? "groups" : null;
  }
  return "records";
}
