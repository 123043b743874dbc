import type { SqlValue } from "../../../db/index.ts";
import { join, type SqlCondition } from "../filters/filter-sql.ts";
import { type Beyond, orderBy, type Sort } from "../filters/sort.ts";
import { TESTED_BYTES_MAX, TESTED_ROWS_MAX, TESTED_ROWS_MIN, TESTED_ROWS_PER_RECORD } from "../limits.ts";
import type { Column, TableModel } from "../model/model.ts";
import { indexedBy } from "./index-choice.ts";
import type { Path } from "./matches.ts";

/** Column with the rowid of a record. */
export const ROW = '"_platform_row"';

/**
 * Returns the statement for the records at the rowids of `places`, in that order, which CROSS JOIN keeps. Records that `places`
 * skips or leaves out are not read from the table.
 */
export const recordsAt = (model: TableModel, columns: string, places: string): string =>
  `SELECT ${columns} FROM (${places}) AS "_platform_places" CROSS JOIN ${model.sql} ON ${model.sql}.rowid = "_platform_places".${ROW}`;

/**
 * Returns the LIMIT clause. The limit is part of the text: with a bound limit, SQLite would prepare the statement again for each
 * execution.
 */
export const limitSql = (limit: number, offset: SqlValue): string => `LIMIT ${limit}${offset === 0 ? "" : " OFFSET ?"}`;

/** A page along an index that has its order; at most a bounded number of records is examined. [TB471] */
export interface IndexWalk {
  /** Consecutive ranges of the index. */
  ranges: readonly WalkedRange[];
  limit: number;
}

export interface WalkedRange {
  page: SqlCondition;
  /** Query with a row if the range has more records than the page examines; null when it examines matches only. */
  rest: SqlCondition | null;
}

/** Page to read, as in `ListQuery`. */
interface WalkedPage {
  columns: readonly Column[];
  sort: Sort;
  reverse: boolean;
  limit: number;
  offset: SqlValue;
  offsetMax: number;
  behind: Beyond | null;
}

/** Returns a walk that tests records along the index of `path`; null when too many for the main thread. */
export function testedWalk(model: TableModel, page: WalkedPage, path: Path): IndexWalk | null {
  const { sort, reverse, limit, offset, behind } = page;
  const wanted = page.offsetMax + limit;
  if (wanted > TESTED_ROWS_MAX) return null;
  const rowsMax = Math.min(TESTED_ROWS_MAX, Math.max(TESTED_ROWS_MIN, wanted * TESTED_ROWS_PER_RECORD));
  const rows = `FROM ${indexedBy(model, path.index)}`;
  const order = orderBy(sort, { reverse });
  // Testing a value stored behind large ones reads all of them.
  const isLarge = `${sizeOf(model)} > ${Math.floor(TESTED_BYTES_MAX / rowsMax)}`;
  const columns = page.columns.map(({ name, sql }) =>
    name === "id" ? `CASE WHEN ${isLarge} THEN NULL ELSE ${model.sql}.${sql} END AS ${sql}` : `${model.sql}.${sql}`,
  );
  const tested = path.tested ?? { sql: "1", params: [] };
  const ranges = (behind?.ranges ?? [null]).map((range): WalkedRange => {
    const entered = [path.entering, range].filter((part) => part !== null);
    const condition = entered.length === 0 ? null : join(entered, "AND");
    const params = condition?.params ?? [];
    const bounds = condition === null ? "" : ` WHERE ${condition.sql}`;
    const places = `SELECT rowid AS ${ROW} ${rows}${bounds} ORDER BY ${order.sql} LIMIT ${rowsMax}`;
    const found = recordsAt(model, columns.join(", "), places);
    return {
      page: {
        sql: `${found} WHERE CASE WHEN ${isLarge} THEN 1 ELSE ${tested.sql} END ${limitSql(limit, offset)}`,
        params: [...params, ...order.params, ...tested.params, ...(offset === 0 ? [] : [offset])],
      },
      rest: { sql: `SELECT 1 ${rows}${bounds} LIMIT 1 OFFSET ${rowsMax}`, params },
    };
  });
  return { ranges, limit };
}

/** Returns the SQL for the bytes of the values whose size varies. */
export function sizeOf(model: TableModel): string {
  const varying = model.columns.filter(
    ({ name, type }) => name !== "id" && ["string", "text", "geo", "json", "references"].includes(type),
  );
  return varying.length === 0
    ? "0"
    : varying.map(({ sql }) => `ifnull(octet_length(${model.sql}.${sql}), 0)`).join(" + ");
}
