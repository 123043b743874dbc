import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { QUICK_STEPS_MAX } from "../limits.ts";
import type { Codec, Row } from "../model/codec.ts";
import type { TableModel } from "../model/model.ts";

/** Bytes of a page that is read on the main thread: two or three milliseconds with its JSON. */
const QUICK_PAGE_BYTES = 256 * 1024;

/** Reads the rows of a page on the main thread. */
export interface Rows {
  /** null: the page is too large. `tableBytes`: of the whole table, where they are known. */
  read(file: DatabaseFile, statement: SqlCondition, tableBytes: number | null): TableRecord[] | null;
  /** Whether the rows with which the result was called are too large together. */
  sized(): (row: Row) => boolean;
}

export function createRows({ columns }: TableModel, codec: Codec): Rows {
  const texts = columns.filter(({ type }) => !["number", "integer", "boolean"].includes(type)).map((one) => one.name);
  const sized = () => {
    let bytes = 0;
    return (row: Row): boolean => {
      for (let index = 0; index < texts.length; index++) bytes += lengthOf(row[texts[index] ?? ""]);
      return bytes > QUICK_PAGE_BYTES;
    };
  };

  const read = (file: DatabaseFile, { sql, params }: SqlCondition, tableBytes: number | null): TableRecord[] | null => {
    const statement = file.query<Row>(sql);
    if (tableBytes !== null && tableBytes <= QUICK_PAGE_BYTES) return codec.fromRows(statement.all(...params));
    const rows: Row[] = [];
    const isTooLarge = sized();
    for (const row of statement.iterate(...params)) {
      if (isTooLarge(row)) return null;
      rows.push(row);
    }
    return codec.fromRows(rows);
  };
  return { read, sized };
}

const lengthOf = (value: SqlValue | undefined): number => (typeof value === "string" ? value.length : 0);

export const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

export const number = (file: DatabaseFile, { sql, params }: SqlCondition): number =>
  firstNumber(file.query(sql).values(...params));

/** null: there are too many for the main thread. */
export function fewer(file: DatabaseFile, count: SqlCondition): number | null {
  const matching = number(file, count);
  return matching <= QUICK_STEPS_MAX ? matching : null;
}
