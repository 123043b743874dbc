import type { Database } from "bun:sqlite";
import { BoundedMap } from "../../../../../kernel/bounded-map.ts";
import type { DatabaseFile } from "../../../../db/index.ts";
import { TOTAL_KEY_LENGTH_MAX, TOTALS_MAX } from "../../limits.ts";
import type { SqlCondition } from "../filter-sql.ts";

interface Total {
  value: number;
  version: number;
}

/**
 * The totals that were counted last, while their table has not changed. The statement and its bound values are the key, so a
 * total is never that of another caller's rule. [TB470]
 */
export interface Totals {
  /** null: not known. */
  get(file: DatabaseFile, count: SqlCondition): number | null;
  /** Call before the count; call the result with what was counted, which is dropped if the table has changed meanwhile. */
  begin(file: DatabaseFile, count: SqlCondition): (value: number) => void;
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
    get(file, count) {
      const version = file.tableVersion(table);
      const known = files.get(file.sqlite)?.get(keyOf(count));
      return known !== undefined && known.version === version ? known.value : null;
    },
    begin(file, count) {
      const { sqlite } = file;
      const version = file.tableVersion(table);
      return (value) => {
        const key = keyOf(count);
        if (version === null || key.length > TOTAL_KEY_LENGTH_MAX) return;
        if (file.sqlite === sqlite && file.tableVersion(table) === version) ofFile(sqlite).set(key, { value, version });
      };
    },
  };
}

const keyOf = ({ sql, params }: SqlCondition): string =>
  `${sql}\n${JSON.stringify(params, (_, value: unknown) => (typeof value === "bigint" ? { integer: `${value}` } : value))}`;
