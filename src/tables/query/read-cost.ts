import type { SqlValue } from "../../db/index.ts";
import type { Condition } from "./filter.ts";
import type { Sort } from "./sort.ts";

// Estimates of how long a statement holds the main thread, at their worst, measured on one core of a 2.5 GHz server. What
// takes longer than QUICK_READ_NS runs in a query process, the way to which costs some 100 µs.

const QUICK_READ_NS = 5_000_000;

const ROW_NS = 60;
const BYTE_NS = 0.5;
const COLUMN_CONDITION_NS = 10;
/** A JSON value is parsed once a row, and looked into for each condition. */
const JSON_CONDITION_NS = 400;
const JSON_PARSED_BYTE_NS = 2;
/** `instr` compares at each byte of the text: `aaab` is looked for in `aaaa…`. */
const SUBSTRING_BYTE_NS = 15;
const SUBSTRING_NEEDLE_NS = 0.03;
const SORTED_ROW_NS = 150;
/** A sort that keeps more than the first few rows carries whole records. */
const KEPT_ROWS_FEW = 200;
const SORTED_ALL_ROW_NS = 2_000;
const SORTED_ALL_BYTE_NS = 1;
/** Bound values: those of `in` become an index of their own at each execution. */
const PARAM_NS = 1_500;

/** What a statement costs by itself, for each row that it looks at, and for each byte of them. */
export interface ReadCost {
  fixedNs: number;
  rowNs: number;
  byteNs: number;
}

/** Of looking at every row for those that meet the conditions. */
export function scanCost(conditions: readonly Condition[], params: readonly SqlValue[]): ReadCost {
  const cost = { fixedNs: params.length * PARAM_NS, rowNs: ROW_NS, byteNs: BYTE_NS };
  let isParsed = false;
  for (const { field, operator, value } of conditions) {
    cost.rowNs += field.isJson ? JSON_CONDITION_NS : COLUMN_CONDITION_NS;
    isParsed ||= field.isJson;
    if (operator === "contains") {
      const needleBytes = typeof value === "string" ? value.length : 0;
      cost.byteNs += SUBSTRING_BYTE_NS + needleBytes * SUBSTRING_NEEDLE_NS;
    }
  }
  if (isParsed) cost.byteNs += JSON_PARSED_BYTE_NS;
  return cost;
}

/** With the sort of what is found, unless an index has it in that order already; `kept`: rows up to the end of the page. */
export function sortedCost(cost: ReadCost, sort: Sort, kept: number): ReadCost {
  const isAll = kept > KEPT_ROWS_FEW;
  const isJson = sort.terms.some(({ field }) => field.isJson);
  return {
    fixedNs: cost.fixedNs,
    rowNs:
      cost.rowNs + (isAll ? SORTED_ALL_ROW_NS : SORTED_ROW_NS) + (isJson ? JSON_CONDITION_NS * sort.terms.length : 0),
    byteNs: cost.byteNs + (isAll ? SORTED_ALL_BYTE_NS : 0) + (isJson ? JSON_PARSED_BYTE_NS : 0),
  };
}

export const isQuick = (cost: ReadCost, rows: number, bytes: number): boolean =>
  cost.fixedNs + cost.rowNs * rows + cost.byteNs * bytes <= QUICK_READ_NS;

/** Whether the main thread can take it where an index bounds the records that are looked at. */
export const isLight = ({ fixedNs }: ReadCost): boolean => fixedNs <= QUICK_READ_NS / 2;

/** Whether a condition may take long on one record. */
export const isHeavy = ({ field, operator }: Condition): boolean => field.isJson || operator === "contains";
