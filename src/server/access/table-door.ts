import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import type { TableRecord } from "../config/types.ts";
import type { TableStart } from "../db/index.ts";
import type { LookupWatch } from "./lookups/lookups.ts";
import type { Principal } from "./principal.ts";

export interface TableAddress {
  namespace: string;
  /** The instance; null in a static namespace. */
  instanceId: string | null;
  table: string;
}

/** A compiled filter. Filters with the same `key` match the same records. */
export interface RecordFilter {
  key: string;
  matches(record: TableRecord): boolean;
}

/** The source of access to all records: a literal in the config, a rule that returned `true`, or one that returned an empty filter. */
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
  related?: RelatedFilters & FilterOutcome;
}

/** Filters of a client with relations to other tables. */
export interface RelatedFilters {
  all: unknown;
  any: unknown;
}

/** Called about the filters of a client. */
interface FilterOutcome {
  /** The conditions are not valid, or ask a table that cannot be asked. */
  refused(message: string): void;
  /** Whether a record matches would take too long to find out. */
  undecided(): void;
}

/**
 * A request to learn what a rule looks at. `about`: the record in question; null: any of the table. `isKnown`: whether it has
 * already been learned for the table's records.
 */
export interface Sight {
  about: string | null;
  isKnown: boolean;
  watch(): LookupWatch;
}

/** The rights of tables, for other areas (realtime): they evaluate the same rules by the same code. */
export interface TableDoor {
  /** Finds a table; null: no such namespace or table. */
  find(namespace: string, table: string): { isDynamic: boolean } | null;
  /** Returns the tables whose changes concern the subscribers of a view; null for a table, which has changes of its own. */
  sources(address: TableAddress): readonly string[] | null;
  isDynamic(namespace: string): boolean | null;
  /** Returns `DatabaseFile.startOf` for a table; null in an instance, and where there is no such table. */
  startOf(address: TableAddress, about?: { isKept?: boolean }): TableStart | null;
  /** Returns the tables whose places are known from before the start. */
  kept(): readonly TableAddress[];
  isInstanceId(id: string): boolean;
  /**
   * Evaluates the read access of a table, including the instance's `open` rule. Errors: 401, 403, 404, like a list of the table.
   * `before` is the previous result, which is returned again if the rule's filter is unchanged. `watch` receives the places that
   * the rules look at. `sight`, for an access of kind `record`: receives what the rule looks at for the record `about`, or for some
   * of the table (null), unless that is known, and with each call of `allows`. `related`: the access is of kind `record`, to the
   * records that match these filters as well; their relations ask what the principal may read. Errors: filters that are refused.
   */
  readAccess(principal: Principal, address: TableAddress, options?: AccessOptions): MaybePromise<ReadAccess>;
  /**
   * Parses a filter. Records must match all of `all` and, if set, one of `any`; null or absent: no condition. Errors: 400 naming
   * the tuple.
   */
  parseFilter(address: TableAddress, filters: { all?: unknown; any?: unknown }): RecordFilter;
}
