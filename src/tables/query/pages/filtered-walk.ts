import { quoteIdentifier } from "../../../db/index.ts";
import {
  FILTERED_BYTES_MAX,
  FILTERED_ROWS_MAX,
  FILTERED_ROWS_MIN,
  FILTERED_ROWS_PER_RECORD,
  FILTERED_SKIPS_MAX,
} from "../../limits.ts";
import type { TableModel } from "../../model/model.ts";
import { join, type SqlCondition } from "../filter-sql.ts";
import type { Walk } from "../index-choice.ts";
import { type Beyond, orderBy, type Sort, type SortTerm } from "../sort.ts";
import type { GroupWalk } from "./groups.ts";

/** A walk along an index in the requested order, with conditions that the index does not decide. */
export interface FilteredPath {
  walk: Walk;
  /** The conditions by which the index is entered; null: none. */
  entering: SqlCondition | null;
  /** All conditions, the rule's first. */
  where: SqlCondition;
  /** Whether `entering` has all of them. */
  isExact: boolean;
}

/** The statements of one range of the index. */
export interface FilteredRange {
  page: SqlCondition;
  /** The same in the order of the index, which is tried first; null: that is the order of the page. */
  unsorted: GroupWalk | null;
  /** Counts the records that share the sorted value of the last one examined, up to a limit: they are sorted. null: no sort. */
  group: SqlCondition | null;
  /** Has a row where the range has more records than the page examines. */
  rest: SqlCondition;
}

/**
 * A page along an index that examines a bounded number of records. `ranges` follow one another. `progress` is shared by all
 * requests with these statements.
 */
export interface FilteredWalk {
  ranges: readonly FilteredRange[];
  limit: number;
  /** The records of the page that have to be the right ones: a further one only says that there are more. */
  decided: number;
  /** Whether the index holds matches only, next to each other. */
  isExact: boolean;
  progress: WalkProgress;
  /** How it went with records of equal values. */
  ties: WalkProgress;
}

/** How it went lately: after an attempt that was in vain, the next requests do not make it, twice as many each time. */
export class WalkProgress {
  #vainCount = 0;
  #skipsLeft = 0;

  /** Whether this request makes the attempt. */
  next(): boolean {
    if (this.#skipsLeft === 0) return true;
    this.#skipsLeft--;
    return false;
  }

  ended(isVain: boolean): void {
    this.#vainCount = isVain ? this.#vainCount + 1 : 0;
    this.#skipsLeft = isVain ? Math.min(FILTERED_SKIPS_MAX, 2 ** (this.#vainCount - 1)) : 0;
  }
}

/** As in `ListQuery`. */
interface WalkedPage {
  sort: Sort;
  reverse: boolean;
  limit: number;
  decided: number;
  offset: number;
  behind: Beyond | null;
}

const ROW = '"_platform_row"';

/** null: too many records for the main thread, or a cursor whose place no range of the index begins at. */
export function filteredWalk(model: TableModel, query: WalkedPage, path: FilteredPath): FilteredWalk | null {
  const { limit, decided, offset, behind } = query;
  const wanted = offset + limit;
  if (wanted > FILTERED_ROWS_MAX || (behind !== null && behind.ranges === null)) return null;
  const rowsMax = Math.min(FILTERED_ROWS_MAX, Math.max(FILTERED_ROWS_MIN, wanted * FILTERED_ROWS_PER_RECORD));
  const ranges = behind?.ranges ?? [null];
  return {
    limit,
    decided,
    isExact: path.isExact,
    progress: new WalkProgress(),
    ties: new WalkProgress(),
    ranges: ranges.map((range, index) => {
      // Records with the cursor's own value are in the order of their ids.
      const isSorted = path.walk.by === "groups" && (behind === null || index > 0);
      const entered = [path.entering, range].filter((part) => part !== null);
      return rangeOf(model, query, path, { entered, isSorted, rowsMax });
    }),
  };
}

function rangeOf(
  model: TableModel,
  { sort, reverse, limit, offset }: WalkedPage,
  { walk, where }: FilteredPath,
  { entered, isSorted, rowsMax }: { entered: readonly SqlCondition[]; isSorted: boolean; rowsMax: number },
): FilteredRange {
  const condition = entered.length === 0 ? null : join(entered, "AND");
  const params = condition?.params ?? [];
  const rows = `FROM ${model.sql} INDEXED BY ${quoteIdentifier(walk.index)}`;
  const bounds = condition === null ? "" : ` WHERE ${condition.sql}`;
  const order = orderBy(sort, { reverse });
  const [leading, tie] = sort.terms;
  const isDescending = (term: SortTerm | undefined): boolean => (term?.direction === "desc") !== reverse;
  // Only the places of records are sorted. CROSS JOIN keeps their order, and ends with the page.
  const placesBy = (by: string): string => `SELECT rowid AS ${ROW} ${rows}${bounds} ORDER BY ${by} LIMIT ${rowsMax}`;
  const isLarge = `${sizeOf(model)} > ${Math.floor(FILTERED_BYTES_MAX / rowsMax)}`;
  const columns = model.columns.map(({ name, sql }) =>
    name === "id" ? `CASE WHEN ${isLarge} THEN NULL ELSE ${model.sql}.${sql} END AS ${sql}` : `${model.sql}.${sql}`,
  );
  const testedIn = (places: string): string =>
    `SELECT ${columns.join(", ")} FROM (${places}) AS "_platform_places" CROSS JOIN ${model.sql} ` +
    `ON ${model.sql}.rowid = "_platform_places".${ROW} WHERE CASE WHEN ${isLarge} THEN 1 ELSE ${where.sql} END`;
  const column = leading?.field.column;
  const isUnsorted = isSorted && offset === 0 && column !== undefined;
  return {
    unsorted: !isUnsorted
      ? null
      : {
          column: column.name,
          isIdDescending: isDescending(tie),
          statement: {
            sql: testedIn(placesBy(`${column.sql} ${isDescending(leading) ? "DESC" : "ASC"}`)),
            params: [...params, ...where.params],
          },
        },
    page: {
      sql: `${testedIn(placesBy(order.sql))} LIMIT ${limit}${offset === 0 ? "" : " OFFSET ?"}`,
      params: [...params, ...order.params, ...where.params, ...(offset === 0 ? [] : [offset])],
    },
    group: isSorted ? lastGroup(rows, sort, reverse, { condition, rowsMax }) : null,
    rest: { sql: `SELECT 1 ${rows}${bounds} LIMIT 1 OFFSET ${rowsMax}`, params },
  };
}

/** The bytes of the values whose size varies: a test of a value behind them reads them all. */
function sizeOf(model: TableModel): string {
  const varying = model.columns.filter(({ name, type }) => name !== "id" && ["string", "text", "json"].includes(type));
  return varying.length === 0
    ? "0"
    : varying.map(({ sql }) => `ifnull(octet_length(${model.sql}.${sql}), 0)`).join(" + ");
}

function lastGroup(
  rows: string,
  { terms }: Sort,
  reverse: boolean,
  { condition, rowsMax }: { condition: SqlCondition | null; rowsMax: number },
): SqlCondition | null {
  const [leading] = terms;
  if (leading === undefined) return null;
  const column = leading.field.column.sql;
  const direction = (leading.direction === "desc") !== reverse ? "DESC" : "ASC";
  const bounds = condition === null ? "" : ` WHERE ${condition.sql}`;
  // null where fewer records follow; the last group is then that of null.
  const last = `SELECT ${column} ${rows}${bounds} ORDER BY ${column} ${direction} LIMIT 1 OFFSET ${rowsMax - 1}`;
  const inGroup = { sql: `${column} IS (${last})`, params: condition?.params ?? [] };
  const found = condition === null ? inGroup : join([condition, inGroup], "AND");
  return {
    sql: `SELECT count(*) FROM (SELECT 1 ${rows} WHERE ${found.sql} LIMIT ${FILTERED_ROWS_MAX + 1})`,
    params: found.params,
  };
}
