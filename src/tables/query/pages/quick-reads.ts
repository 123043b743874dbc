import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import { FILTERED_ROWS_MAX, QUICK_STEPS_MAX } from "../../limits.ts";
import type { Codec, Row } from "../../model/codec.ts";
import type { TableModel } from "../../model/model.ts";
import { bound, type SqlCondition } from "../filter-sql.ts";
import type { PreparedList } from "../list-sql.ts";
import { isLight, isQuick, type ReadCost } from "../read-cost.ts";
import type { FilteredWalk } from "./filtered-walk.ts";

/** Bytes of a page that is read on the main thread: two or three milliseconds with its JSON. */
const QUICK_PAGE_BYTES = 256 * 1024;
/** Bytes of the sorted fields of the few records that an index finds. */
const QUICK_STEPS_BYTES = 4 * 1024 * 1024;

/** What the main thread found of a list. */
interface QuickPage {
  /** null: `statement` has to run in a query process. */
  records: TableRecord[] | null;
  statement: SqlCondition;
  /** The number of matches, where it was counted on the way. */
  matching: number | null;
  /** Whether the whole table may be scanned on the main thread. */
  isScan: boolean;
}

/** The reads of a table that take a few milliseconds on the main thread at most. [TB102] */
export interface QuickReads {
  /** `known`: the total, where it is. */
  page(file: DatabaseFile, prepared: PreparedList, about: { known: number | null; isTotalWanted: boolean }): QuickPage;
  /** Whether every record may be tested. */
  isScan(file: DatabaseFile, cost: ReadCost): boolean;
}

export function createQuickReads(model: TableModel, codec: Codec): QuickReads {
  const { name, columns } = model;
  const texts = columns.filter(({ type }) => !["number", "integer", "boolean"].includes(type)).map((one) => one.name);

  /**
   * The bytes of a table that may be scanned on the main thread; null: the table is too large, or the conditions take too
   * long.
   */
  const scanned = (file: DatabaseFile, cost: ReadCost): number | null => {
    const bytes = file.tableBytes(name);
    return bytes !== null && isQuick(cost, file.rowCount(name), bytes) ? bytes : null;
  };

  /** null: the page is too large. */
  const read = (file: DatabaseFile, { sql, params }: SqlCondition, tableBytes: number | null): TableRecord[] | null => {
    const statement = file.query<Row>(sql);
    if (tableBytes !== null && tableBytes <= QUICK_PAGE_BYTES) return codec.fromRows(statement.all(...params));
    const rows: Row[] = [];
    let bytes = 0;
    for (const row of statement.iterate(...params)) {
      for (let index = 0; index < texts.length; index++) bytes += lengthOf(row[texts[index] ?? ""]);
      if (bytes > QUICK_PAGE_BYTES) return null;
      rows.push(row);
    }
    return codec.fromRows(rows);
  };

  /** null: too many records, too large ones or too large a page; the caller reads it in another way. [TB471] */
  const walked = (file: DatabaseFile, { ranges, limit }: FilteredWalk, bind: Bind): TableRecord[] | null => {
    const records: TableRecord[] = [];
    for (const { page, group, rest } of ranges) {
      if (records.length >= limit) break;
      if (group !== null && number(file, bind(group)) > FILTERED_ROWS_MAX) return null;
      const found = read(file, bind(page), null);
      if (found === null || found.some((record) => record["id"] === null)) return null;
      records.push(...found);
      if (records.length < limit && hasRow(file, bind(rest))) return null;
    }
    if (records.length > limit) records.length = limit;
    return records;
  };
  const filteredPage = (file: DatabaseFile, walk: FilteredWalk, bind: Bind): TableRecord[] | null => {
    if (!walk.progress.next()) return null;
    const records = walked(file, walk, bind);
    walk.progress.ended(records === null);
    return records;
  };

  return {
    isScan: (file, cost) => scanned(file, cost) !== null,
    page(file, { values, page, ofFew, walk, filtered, cost }, { known, isTotalWanted }) {
      const bind: Bind = (statement) => bound(statement, values);
      const whole = bind(page);
      const bytes = scanned(file, cost);
      if (bytes !== null) return { records: read(file, whole, bytes), statement: whole, matching: null, isScan: true };
      const other = { statement: whole, matching: null, isScan: false };
      if (!isLight(cost)) return { ...other, records: null };
      const few = (): number | null => {
        if (known !== null) return known <= QUICK_STEPS_MAX ? known : null;
        return ofFew === null ? null : fewer(file, bind(ofFew.count));
      };
      const isSmall = ({ bytes: sum }: { bytes: SqlCondition | null }): boolean =>
        sum === null || number(file, bind(sum)) <= QUICK_STEPS_BYTES;
      const isWalk =
        walk !== null && (walk.steps === null || (fewer(file, bind(walk.steps.count)) !== null && isSmall(walk.steps)));
      if (isWalk) return { ...other, records: read(file, whole, null), matching: isTotalWanted ? few() : null };
      // An index that has all matches next to each other is better than testing records along another one.
      const isTested = filtered !== null && (filtered.isExact || ofFew === null);
      const tested = isTested ? filteredPage(file, filtered, bind) : null;
      if (tested !== null) return { ...other, records: tested, matching: isTotalWanted ? few() : null };
      const matching = few();
      if (matching !== null && ofFew !== null && isSmall(ofFew)) {
        const statement = bind(ofFew.page);
        return { records: read(file, statement, null), statement, matching, isScan: false };
      }
      const records = isTested || filtered === null ? null : filteredPage(file, filtered, bind);
      return { ...other, records, matching };
    },
  };
}

/** Puts the values of the request into a statement. */
type Bind = (statement: SqlCondition) => SqlCondition;

const lengthOf = (value: SqlValue | undefined): number => (typeof value === "string" ? value.length : 0);

export const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

export const number = (file: DatabaseFile, { sql, params }: SqlCondition): number =>
  firstNumber(file.query(sql).values(...params));

/** null: there are too many for the main thread. */
export function fewer(file: DatabaseFile, count: SqlCondition): number | null {
  const matching = number(file, count);
  return matching <= QUICK_STEPS_MAX ? matching : null;
}

const hasRow = (file: DatabaseFile, { sql, params }: SqlCondition): boolean => file.query(sql).get(...params) !== null;
