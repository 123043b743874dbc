import type { TableRecord } from "../../config/types.ts";
import type { DatabaseFile, PageBounds, ReadCaller, SqlValue } from "../../db/index.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { countRows } from "../../kernel/observing/request-trace.ts";
import { PAGE_BYTES_MAX, QUICK_STEPS_MAX } from "../limits.ts";
import type { Codec, Row } from "../model/codec.ts";
import { DOCUMENT_COLUMN, type TableModel } from "../model/model.ts";
import type { SqlCondition } from "./filter-sql.ts";
import { countOf, countOfFew, idsOf, type Matches, type PreparedList } from "./list-sql.ts";
import { isLight, isQuick, type ReadCost } from "./read-cost.ts";

/** Bytes of a page that is read on the main thread: two or three milliseconds with its JSON. */
const QUICK_PAGE_BYTES = 256 * 1024;
/** Bytes of the sorted fields of the few records that an index finds. */
const QUICK_STEPS_BYTES = 4 * 1024 * 1024;

export interface Page {
  records: TableRecord[];
  /** null where none is wanted. */
  total: number | null;
  /** Whether the page ended early because its next record would have made it too large. */
  isCut: boolean;
}

/**
 * Lists and counts. They run on the main thread where that takes a few milliseconds at most, else in a query process.
 * [TB102]
 */
export interface Pages {
  list(file: DatabaseFile, prepared: PreparedList, caller?: ReadCaller): MaybePromise<Page>;
  count(file: DatabaseFile, matches: Matches, caller?: ReadCaller): MaybePromise<number>;
  /** The ids of the first `limit` matches. */
  ids(
    file: DatabaseFile,
    matches: Matches,
    options: { limit: number; caller: ReadCaller | undefined },
  ): Promise<string[]>;
}

export function createPages(model: TableModel, codec: Codec): Pages {
  const { name, columns } = model;
  const texts = columns.filter(({ type }) => !["number", "integer", "boolean"].includes(type)).map((one) => one.name);
  const bounds = pageBounds(model);

  /**
   * The bytes of a table that may be scanned on the main thread; null: the table is too large, or the conditions take too
   * long.
   */
  const quickBytes = (file: DatabaseFile, rows: number, cost: ReadCost): number | null => {
    const bytes = file.tableBytes(name);
    return bytes !== null && isQuick(cost, rows, bytes) ? bytes : null;
  };

  /** null: the page is too large. */
  const quickPage = (
    file: DatabaseFile,
    { sql, params }: SqlCondition,
    tableBytes: number | null,
  ): TableRecord[] | null => {
    const statement = file.query<Row>(sql);
    if (tableBytes !== null && tableBytes <= QUICK_PAGE_BYTES) return codec.fromRows(statement.all(...params));
    const rows: Row[] = [];
    let bytes = 0;
    for (const row of statement.iterate(...params)) {
      for (const text of texts) bytes += lengthOf(row[text]);
      if (bytes > QUICK_PAGE_BYTES) return null;
      rows.push(row);
    }
    return codec.fromRows(rows);
  };

  const longPage = async (file: DatabaseFile, { sql, params }: SqlCondition, caller: ReadCaller | undefined) => {
    const { rows, isCut } = await file.readPage(sql, params, { caller, page: bounds, decode: codec.fromValues });
    return { records: rows, isCut };
  };

  const longCount = async (file: DatabaseFile, { sql, params }: SqlCondition, caller: ReadCaller | undefined) =>
    firstNumber(await file.read(sql, params, { caller }));

  return {
    list(file, { page, total, ofFew, walk, cost }, caller) {
      const rows = file.rowCount(name);
      const bytes = quickBytes(file, rows, cost);
      const isLong = bytes === null && !isLight(cost);
      const isWalk =
        bytes === null &&
        !isLong &&
        walk !== null &&
        (walk.steps === null || (fewer(file, walk.steps.count) !== null && isSmall(file, walk.steps)));
      const isFewAsked = bytes === null && !isLong && !(isWalk && total === null);
      const matching = isFewAsked && ofFew !== null ? fewer(file, ofFew.count) : null;
      // A read along an index reads the records of its page only; a sort reads the sorted fields of all matches.
      const sorted = isWalk || matching === null || ofFew === null || !isSmall(file, ofFew) ? null : ofFew.page;
      const statement = sorted ?? page;
      const isHere = bytes !== null || isWalk || sorted !== null;
      const quick = isHere ? quickPage(file, statement, bytes) : null;

      let counted: MaybePromise<number | null> = null;
      if (total !== null && total.sql === null) counted = rows;
      else if (total?.sql)
        counted = matching ?? (bytes === null ? longCount(file, total.sql, caller) : number(file, total.sql));
      const found = quick === null ? longPage(file, statement, caller) : { records: quick, isCut: false };
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
    count(file, matches, caller) {
      const rows = file.rowCount(name);
      const statement = countOf(model, matches);
      if (statement === null) return rows;
      if (quickBytes(file, rows, matches.cost) !== null) return number(file, statement);
      const steps = isLight(matches.cost) ? countOfFew(model, matches) : null;
      const matching = steps === null ? null : fewer(file, steps);
      return matching ?? longCount(file, statement, caller);
    },
    async ids(file, matches, { limit, caller }) {
      const { sql, params } = idsOf(model, matches, limit);
      const isHere = quickBytes(file, file.rowCount(name), matches.cost) !== null;
      const found = isHere ? file.query(sql).values(...params) : await file.read(sql, params, { caller });
      return found.map(([id]) => String(id));
    },
  };
}

/** The bytes of a record as JSON without its values: names, colons, commas and braces. */
export function pageBounds({ columns, isSchemaless }: TableModel): PageBounds {
  const jsonColumns = columns.flatMap(({ type, name }, index) =>
    type === "json" || (isSchemaless && name === DOCUMENT_COLUMN) ? [index] : [],
  );
  const rowBytes = columns.reduce((bytes, { name }) => bytes + Buffer.byteLength(JSON.stringify(name)) + 2, 2);
  return { bytesMax: PAGE_BYTES_MAX, rowBytes, jsonColumns };
}

const lengthOf = (value: SqlValue | undefined): number => (typeof value === "string" ? value.length : 0);

const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

const number = (file: DatabaseFile, { sql, params }: SqlCondition): number =>
  firstNumber(file.query(sql).values(...params));

/** null: there are too many for the main thread. */
function fewer(file: DatabaseFile, count: SqlCondition): number | null {
  const matching = number(file, count);
  return matching <= QUICK_STEPS_MAX ? matching : null;
}

/** Whether the few matches can be read and sorted on the main thread. */
const isSmall = (file: DatabaseFile, { bytes }: { bytes: SqlCondition | null }): boolean =>
  bytes === null || number(file, bytes) <= QUICK_STEPS_BYTES;
