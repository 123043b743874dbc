import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { QUICK_STEPS_MAX } from "../../limits.ts";
import type { Codec } from "../../model/codec.ts";
import type { TableModel } from "../../model/model.ts";
import { bound, type SqlCondition } from "../filter-sql.ts";
import type { PreparedList } from "../list-sql.ts";
import { isLight, isQuick, type ReadCost } from "../read-cost.ts";
import { type Bind, createIndexWalks } from "./index-walks.ts";
import { createRows, fewer, number } from "./rows.ts";

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
  const { name } = model;

  /**
   * The bytes of a table that may be scanned on the main thread; null: the table is too large, or the conditions take too
   * long.
   */
  const scanned = (file: DatabaseFile, cost: ReadCost): number | null => {
    const bytes = file.tableBytes(name);
    return bytes !== null && isQuick(cost, file.rowCount(name), bytes) ? bytes : null;
  };

  const rows = createRows(model, codec);
  const { read } = rows;
  const walked = createIndexWalks(codec, rows);

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
      const tested = isTested ? walked(file, filtered, bind) : null;
      if (tested !== null) return { ...other, records: tested, matching: isTotalWanted ? few() : null };
      const matching = few();
      if (matching !== null && ofFew !== null && isSmall(ofFew)) {
        const statement = bind(ofFew.page);
        return { records: read(file, statement, null), statement, matching, isScan: false };
      }
      const records = isTested || filtered === null ? null : walked(file, filtered, bind);
      return { ...other, records, matching };
    },
  };
}
