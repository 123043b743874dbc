import { compareText } from "../../../kernel/records/text-match.ts";
import type { Row } from "../../model/codec.ts";
import type { SqlCondition } from "../filter-sql.ts";

/**
 * A range of an index that has the order of the leading field of a sort, and among records of equal values any order: they are
 * sorted by their ids as they are read. SQLite would look each of them up twice, first for its id.
 */
export interface GroupWalk {
  /** In the order of the index; it ends with the records that may be examined. */
  statement: SqlCondition;
  /** The leading field. */
  column: string;
  isIdDescending: boolean;
}

/**
 * The first rows of the order: `decided` of them are the right ones, and any further one only says that there are more. They are
 * complete when a row of the next group follows them; else `found` ended before. null: too many are equal, or too large.
 */
export function groupedRows(
  found: Iterable<Row>,
  { column, isIdDescending }: GroupWalk,
  { decided, isTooLarge }: { decided: number; isTooLarge(row: Row): boolean },
): { rows: Row[]; isComplete: boolean } | null {
  const rows: Row[] = [];
  let isComplete = false;
  for (const row of found) {
    if (isTooLarge(row)) return null;
    rows.push(row);
    isComplete = rows.length > decided && row[column] !== rows[decided - 1]?.[column];
    if (isComplete) break;
    if (rows.length > 2 * decided) return null;
  }
  sortGroups(rows, column, isIdDescending);
  return { rows, isComplete };
}

function sortGroups(rows: Row[], column: string, isDescending: boolean): void {
  const sign = isDescending ? -1 : 1;
  for (let start = 0; start < rows.length; ) {
    let end = start + 1;
    while (end < rows.length && rows[end]?.[column] === rows[start]?.[column]) end++;
    if (end - start > 1) {
      const group = rows.slice(start, end);
      group.sort((a, b) => sign * compareText(String(a["id"]), String(b["id"])));
      for (const [place, row] of group.entries()) rows[start + place] = row;
    }
    start = end;
  }
}
