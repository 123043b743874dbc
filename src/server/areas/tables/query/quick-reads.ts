import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import { bound, type SqlCondition } from "../filters/filter-sql.ts";
import { isLight, isQuick, type ReadCost } from "../filters/read-cost.ts";
import { CANDIDATES_MAX, QUICK_STEPS_BYTES, QUICK_STEPS_MAX } from "../limits.ts";
import type { Codec, Row } from "../model/codec.ts";
import type { TableModel } from "../model/model.ts";
import type { IndexWalk } from "./index-walk.ts";
import type { FewMatches, PreparedList } from "./list-sql.ts";
import { walkNear } from "./nearest.ts";

/** Bytes of a page read on the main thread: two or three milliseconds with its JSON. */
const QUICK_PAGE_BYTES = 256 * 1024;

/**
 * Returns the function that reads the rows of a page on the main thread; it returns null when the page is too large. `tableBytes`:
 * bytes of the whole table, if known.
 */
function createRead({ columns }: TableModel, codec: Codec) {
  const texts = columns.filter(({ type }) => !["number", "integer", "boolean"].includes(type)).map((one) => one.name);
  return (file: DatabaseFile, { sql, params }: SqlCondition, tableBytes: number | null): TableRecord[] | null => {
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
}

const lengthOf = (value: SqlValue | undefined): number => (typeof value === "string" ? value.length : 0);

export const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

export const number = (file: DatabaseFile, { sql, params }: SqlCondition): number =>
  firstNumber(file.query(sql).values(...params));

/** Returns a count; null when there are too many for the main thread. */
export function fewer(file: DatabaseFile, count: SqlCondition): number | null {
  const matching = number(file, count);
  return matching <= QUICK_STEPS_MAX ? matching : null;
}

/** Whether there are so few and small candidates that they may be tested on the main thread; true where an index has matches only. */
export function hasFewCandidates(
  file: DatabaseFile,
  { candidates }: Pick<FewMatches, "candidates">,
  values: readonly SqlValue[],
): boolean {
  if (candidates === null) return true;
  if (number(file, bound(candidates.count, values)) > CANDIDATES_MAX) return false;
  return number(file, bound(candidates.bytes, values)) <= QUICK_STEPS_BYTES;
}

/** Part of a list found on the main thread. */
interface QuickPage {
  /** Records of the page; null when it has to be read in a query process. */
  records: TableRecord[] | null;
  /** Statement that such a process reads it by in place of `PreparedList.page`. */
  page?: SqlCondition | null;
  /** Number of matches, if it was counted on the way; else null. */
  matching: number | null;
  /** Whether the whole table may be scanned on the main thread. */
  isScan: boolean;
}

/** Reads of a table that take a few milliseconds on the main thread at most. [TB102] */
export function createQuickReads(model: TableModel, codec: Codec) {
  const { name } = model;

  /**
   * Returns the bytes of a table that may be scanned on the main thread; null when the table is too large, or the conditions take
   * too long.
   */
  const scanned = (file: DatabaseFile, cost: ReadCost): number | null => {
    const bytes = file.tableBytes(name);
    return bytes !== null && isQuick(cost, file.rowCount(name), bytes) ? bytes : null;
  };

  const read = createRead(model, codec);

  /** Reads a walk range by range; null for too many records, too large ones or too large a page. */
  const walked = (
    file: DatabaseFile,
    { ranges, limit }: IndexWalk,
    values: readonly SqlValue[],
  ): TableRecord[] | null => {
    const records: TableRecord[] = [];
    for (const { page, rest } of ranges) {
      if (records.length >= limit) break;
      const found = read(file, bound(page, values), null);
      if (found === null || (rest !== null && found.some((record) => record["id"] === null))) return null;
      if (rest === null && ranges.length === 1) return found;
      records.push(...found);
      if (records.length < limit && rest !== null && hasRow(file, bound(rest, values))) return null;
    }
    if (records.length > limit) records.length = limit;
    return records;
  };

  return {
    /** Whether every record may be tested on the main thread. */
    isScan: (file: DatabaseFile, cost: ReadCost): boolean => scanned(file, cost) !== null,
    /** Reads a page. `known`: the total, or null. */
    page(
      file: DatabaseFile,
      { page, ofFew: found, walk, near, cost }: PreparedList,
      values: readonly SqlValue[],
      { known, isTotalWanted }: { known: number | null; isTotalWanted: boolean },
    ): QuickPage {
      const bytes = scanned(file, cost);
      if (bytes !== null) return { records: read(file, bound(page, values), bytes), matching: null, isScan: true };
      if (!isLight(cost)) return { records: null, matching: null, isScan: false };
      if (near !== null) {
        const walked = walkNear(near, { file, values, read: (statement) => read(file, statement, null) });
        return { ...walked, matching: null, isScan: false };
      }
      // An index that finds all matches is better than testing records along another one.
      const isFirst =
        walk !== null && (found === null || found.isBehindWalk || walk.ranges.every(({ rest }) => rest === null));
      const first = isFirst ? walked(file, walk, values) : null;
      if (first !== null && !isTotalWanted) return { records: first, matching: null, isScan: false };
      const ofFew = found !== null && hasFewCandidates(file, found, values) ? found : null;
      const few = (): number | null => {
        if (known !== null) return known <= QUICK_STEPS_MAX ? known : null;
        return ofFew === null ? null : fewer(file, bound(ofFew.count, values));
      };
      if (first !== null) return { records: first, matching: few(), isScan: false };
      const matching = ofFew?.isBounded === true && !isTotalWanted ? null : few();
      if (ofFew !== null && (ofFew.isBounded || matching !== null) && isSmall(file, ofFew, values)) {
        return { records: read(file, bound(ofFew.page, values), null), matching, isScan: false };
      }
      return { records: isFirst || walk === null ? null : walked(file, walk, values), matching, isScan: false };
    },
  };
}

const hasRow = (file: DatabaseFile, { sql, params }: SqlCondition): boolean => file.query(sql).get(...params) !== null;

const isSmall = (file: DatabaseFile, { bytes }: FewMatches, values: readonly SqlValue[]): boolean =>
  bytes === null || number(file, bound(bytes, values)) <= QUICK_STEPS_BYTES;
