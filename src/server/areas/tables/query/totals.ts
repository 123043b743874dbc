import type { Database } from "bun:sqlite";
import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { TOTAL_KEY_LENGTH_MAX, TOTALS_MAX } from "../limits.ts";

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
 * The totals that were counted last, while their table has not changed. The statement and its bound values are the key, so a
 * total is never that of another caller's rule. [TB470]
 */
export interface Totals {
  /** null: not known. */
  get(file: DatabaseFile, counting: Counting): number | null;
  /** Call before the count; call the result with what was counted, which is dropped if the table has changed meanwhile. */
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
        if (version === null || key.length > TOTAL_KEY_LENGTH_MAX) return;
        if (file.sqlite === sqlite && file.tableVersion(table) === version) ofFile(sqlite).set(key, { value, version });
      };
    },
  };
}

const keyOf = ({ sql, params }: SqlCondition): string =>
  `${sql}\n${JSON.stringify(params, (_, value: unknown) => (typeof value === "bigint" ? { integer: `${value}` } : value))}`;
