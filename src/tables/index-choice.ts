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
 * Whether an index leads along the matches in the order wanted, so that a page takes as many steps as it has records:
 * its leading columns are those that `conditions` hold equal, and then comes the sort.
 */
export function isWalk(model: TableModel, conditions: readonly Condition[], sort: Sort): boolean {
  if (sort.terms.some(({ field }) => field.isJson)) return false;
  if (!conditions.every(({ field, operator }) => operator === "==" && !field.isJson)) return false;
  const equal = new Set(conditions.map(({ field }) => field.name));
  if (equal.size < conditions.length) return false;
  return model.indexes.some((index) => leadsAlong(index, equal, sort));
}

function leadsAlong({ columns, isUnique }: TableIndex, equal: ReadonlySet<string>, { terms }: Sort): boolean {
  if (!columns.slice(0, equal.size).every((column) => equal.has(column))) return false;
  const rest = columns.slice(equal.size);
  const [first] = terms;
  for (const [position, { field, direction }] of terms.entries()) {
    // Behind the last column of a unique index no two are equal that the remaining terms would have to order.
    if (position === rest.length)
      return isUnique && terms.slice(0, position).every((term) => !term.field.column.isNullable);
    if (field.name !== rest[position] || direction !== first?.direction) return false;
  }
  return true;
}
