import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import type { TableRecord } from "../config/types.ts";
import type { LookupWatch } from "./lookups/lookups.ts";
import type { Principal } from "./principal.ts";

export interface TableAddress {
  namespace: string;
  /** null in a static namespace. */
  instanceId: string | null;
  table: string;
}

/** A compiled filter. Filters with the same `key` match the same records. */
export interface RecordFilter {
  key: string;
  matches(record: TableRecord): boolean;
}

/** What grants access to all records: a literal in the config, a rule that returned `true`, or one that returned an empty filter. */
export type SaidBy = "config" | "rule" | "filter";

/** The result of a table's read rule for one principal. */
export type ReadAccess =
  | { kind: "all"; saidBy: SaidBy }
  | { kind: "filter"; filter: RecordFilter }
  | { kind: "record"; allows(record: TableRecord): MaybePromise<boolean> };

export interface AccessOptions {
  before?: ReadAccess | null;
  watch?: LookupWatch;
  sight?: Sight;
}

/**
 * `about`: the one record that is asked about; null: any of the table. `isKnown`: whether it has been learned for records of
 * the table already.
 */
export interface Sight {
  about: string | null;
  isKnown: boolean;
  watch(): LookupWatch;
}

/** The rights of tables, for other areas (realtime): they evaluate the same rules by the same code. */
export interface TableDoor {
  /** null: no such namespace or table. */
  find(namespace: string, table: string): { isDynamic: boolean } | null;
  isDynamic(namespace: string): boolean | null;
  isInstanceId(id: string): boolean;
  /**
   * Errors: 401, 403, 404, the same as a list of the table. Evaluates the instance's `open` rule too. `before` is the
   * previous result, which is returned again if the rule's filter is unchanged. `watch` learns what the rules look at.
   * `sight`, for an access of kind `record`: learns what the rule looks at for the record `about`, or for some of the table
   * (null), unless that is known, and with each call of `allows`.
   */
  readAccess(principal: Principal, address: TableAddress, options?: AccessOptions): MaybePromise<ReadAccess>;
  /** Records must match all of `all` and, if given, one of `any`; null or absent: no condition. Errors: 400 naming the tuple. */
  parseFilter(address: TableAddress, filters: { all?: unknown; any?: unknown }): RecordFilter;
}
