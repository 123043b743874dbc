import type { Database } from "bun:sqlite";
import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { countRows } from "../../../../kernel/observing/request-trace.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import { bound, RELATED, type SqlCondition } from "../filters/filter-sql.ts";
import { isLight } from "../filters/read-cost.ts";
import {
  CANDIDATES_MAX,
  QUICK_INDEX_ROWS_MAX,
  QUICK_STEPS_BYTES,
  TOTAL_KEY_LENGTH_MAX,
  TOTALS_MAX,
} from "../limits.ts";
import type { Codec } from "../model/codec.ts";
import type { TableModel } from "../model/model.ts";
import { perTable } from "../records/namespaces.ts";
import { pageBounds } from "../records/store.ts";
import { idsOf, type PreparedCount, type PreparedList } from "./list-sql.ts";
import type { Matches } from "./matches.ts";
import type { Shaped, ShapedList } from "./prepared-reads.ts";
import { createQuickReads, fewer, firstNumber, hasFewCandidates, number } from "./quick-reads.ts";
import { createViewPages } from "./view-reads.ts";

interface Total {
  value: number;
  version: number;
}

/** A count, and the key of its total. */
export interface Counting {
  statement: SqlCondition;
  key: string;
}

export const countingOf = (statement: SqlCondition): Counting => ({ statement, key: keyOf(statement) });

/**
 * Cache of totals, valid while their table has not changed. The statement and its bound values are the key, so that a total is
 * never that of another caller's rule. [TB470]
 */
export interface Totals {
  /** Returns a total; null when it is not cached. */
  get(file: DatabaseFile, counting: Counting): number | null;
  /**
   * Begins a count. Call it before the count, and call the returned function with the result, which is dropped if the table has
   * changed meanwhile.
   */
  begin(file: DatabaseFile, counting: Counting): (value: number) => void;
}

export function createTotals(table: string): Totals {
  // By connection, because an instance file that is opened again counts its versions anew.
  const files = new WeakMap<Database, BoundedMap<string, Total>>();

  const ofFile = (sqlite: Database): BoundedMap<string, Total> => {
    const known = files.get(sqlite) ?? new BoundedMap<string, Total>(TOTALS_MAX);
    files.set(sqlite, known);
    return known;
  };

  return {
    get(file, { key }) {
      const version = file.tableVersion(table);
      const known = files.get(file.sqlite)?.get(key);
      return known !== undefined && known.version === version ? known.value : null;
    },
    begin(file, { key }) {
      const { sqlite } = file;
      const version = file.tableVersion(table);
      return (value) => {
        // A total that depends on other tables changes without its own.
        if (version === null || key.length > TOTAL_KEY_LENGTH_MAX || key.includes(RELATED)) return;
        if (file.sqlite === sqlite && file.tableVersion(table) === version) ofFile(sqlite).set(key, { value, version });
      };
    },
  };
}

const keyOf = ({ sql, params }: SqlCondition): string =>
  `${sql}\n${JSON.stringify(params.map((value) => (typeof value === "bigint" ? { integer: `${value}` } : value)))}`;

export interface Page {
  records: TableRecord[];
  /** Total; null when none is wanted. */
  total: number | null;
  /** Whether the page ended early because its next record would have made it too large. */
  isCut: boolean;
}

/** Lists and counts. They run on the main thread when that takes a few milliseconds at most, else in a query process. [TB102] */
export interface Pages {
  list(file: DatabaseFile, prepared: ShapedList, caller?: ReadCaller): MaybePromise<Page>;
  count(file: DatabaseFile, prepared: Shaped<PreparedCount>, caller?: ReadCaller): MaybePromise<number>;
  /** Whether the matches are so few, and so small, that they may be aggregated on the main thread. */
  isFew(file: DatabaseFile, prepared: Shaped<PreparedCount>): boolean;
  /** Returns the ids of the first `limit` matches. */
  ids(
    file: DatabaseFile,
    matches: Matches,
    options: { limit: number; caller: ReadCaller | undefined },
  ): Promise<string[]>;
}

/** Lists and counts of a table, memoised. */
export const pagesOf = perTable((table) =>
  table.model.view === null ? createPages(table.model, table.store.codec) : createViewPages(table),
);

function createPages(model: TableModel, codec: Codec): Pages {
  const { name, isSchemaless } = model;
  const totals = createTotals(name);
  const quickReads = createQuickReads(model, codec);

  const longPage = async (
    file: DatabaseFile,
    { columns }: PreparedList,
    { sql, params }: SqlCondition,
    caller: ReadCaller | undefined,
  ) => {
    const decode = (row: readonly unknown[]) => codec.fromValues(row, columns);
    const bounds = pageBounds({ columns, isSchemaless });
    const { rows, isCut } = await file.readPage(sql, params, { caller, page: bounds, decode });
    return { records: rows, isCut };
  };

  const longCount = async (file: DatabaseFile, { sql, params }: SqlCondition, caller: ReadCaller | undefined) =>
    firstNumber(await file.read(sql, params, { caller }));

  /** Counts, and caches the total until the table changes. [TB470] */
  const count = (
    file: DatabaseFile,
    counting: Counting,
    { isHere, caller }: { isHere: boolean; caller: ReadCaller | undefined },
  ): MaybePromise<number> => {
    const { statement } = counting;
    const keep = totals.begin(file, counting);
    return chain(isHere ? number(file, statement) : longCount(file, statement, caller), (value) => {
      keep(value);
      return value;
    });
  };

  return {
    list(file, { made, values, offset }, caller) {
      const { total, limit } = made;
      const counting = total === null || total.sql === null ? null : countingOf(bound(total.sql, values));
      const known = counting === null ? null : totals.get(file, counting);
      const quick = quickReads.page(file, made, values, { known, isTotalWanted: total !== null });
      const found =
        quick.records === null
          ? longPage(file, made, quick.page ?? bound(made.page, values), caller)
          : { records: quick.records, isCut: false };
      let counted: MaybePromise<number | null> = null;
      if (total !== null && counting === null) counted = file.rowCount(name);
      else if (counting !== null) {
        counted = known ?? quick.matching ?? totalOfLast(quick.records, limit, offset);
        counted ??= count(file, counting, { isHere: quick.isScan, caller });
      }
      if (!isPromise(found) && !isPromise(counted)) {
        countRows(found.records.length);
        return { ...found, total: counted };
      }
      // In parallel: on a large table, the page and the count run in two processes.
      return Promise.all([found, counted]).then(([read, number]) => {
        countRows(read.records.length);
        return { ...read, total: number };
      });
    },
    count(file, { made: { total, few, isInIndex, cost }, values }, caller) {
      if (total === null) return file.rowCount(name);
      const counting = countingOf(bound(total, values));
      file.assertReadable();
      const known = totals.get(file, counting);
      if (known !== null) return known;
      const isHere = (isInIndex && file.rowCount(name) <= QUICK_INDEX_ROWS_MAX) || quickReads.isScan(file, cost);
      const matching =
        !isHere && few !== null && isLight(cost) && hasFewCandidates(file, few, values)
          ? fewer(file, bound(few.count, values))
          : null;
      return matching ?? count(file, counting, { isHere, caller });
    },
    isFew(file, { made: { few, cost }, values }) {
      if (file.rowCount(name) <= CANDIDATES_MAX && quickReads.isScan(file, cost)) return true;
      if (few === null || !isLight(cost)) return false;
      if (few.candidates !== null) return hasFewCandidates(file, few, values);
      return (
        number(file, bound(few.count, values)) <= CANDIDATES_MAX &&
        number(file, bound(few.size, values)) <= QUICK_STEPS_BYTES
      );
    },
    async ids(file, matches, { limit, caller }) {
      const { sql, params } = idsOf(model, matches, limit);
      const isHere = quickReads.isScan(file, matches.cost);
      const found = isHere ? file.query(sql).values(...params) : await file.read(sql, params, { caller });
      return found.map(([id]) => String(id));
    },
  };
}

/** Returns the total when the page has the last match; null when it may not. */
const totalOfLast = (page: readonly unknown[] | null, limit: number, offset: number): number | null =>
  page !== null && page.length < limit && (page.length > 0 || offset === 0) ? offset + page.length : null;
