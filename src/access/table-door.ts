import type { TableRecord } from "../config/types.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { Principal } from "./principal.ts";

export interface TableAddress {
  namespace: string;
  /** null in a static namespace. */
  instanceId: string | null;
  table: string;
}

/** A filter that is ready to be asked about records. Filters with one `key` give the same answers. */
export interface RecordFilter {
  key: string;
  matches(record: TableRecord): boolean;
}

/** Where "everything" comes from: written in the config, a rule's `true`, or a rule's empty filter. */
export type SaidBy = "config" | "rule" | "filter";

/** What a table's read rule says of one principal. */
export type ReadAccess =
  | { kind: "all"; saidBy: SaidBy }
  | { kind: "filter"; filter: RecordFilter }
  | { kind: "record"; allows(record: TableRecord): MaybePromise<boolean> };

/** The tables' rights for those outside the area (realtime): the same rule, asked in the same place. */
export interface TableDoor {
  /** null: no such namespace or table. */
  find(namespace: string, table: string): { isDynamic: boolean } | null;
  isDynamic(namespace: string): boolean | null;
  isInstanceId(id: string): boolean;
  /**
   * Errors: 401, 403, 404 as a list of the table would answer. Asks the instance's open rule too. `before`: what it gave
   * last, which is given again when the rule's filter is the same.
   */
  readAccess(principal: Principal, address: TableAddress, before?: ReadAccess | null): MaybePromise<ReadAccess>;
  /** `all` must hold and, where given, one of `any`; null or absent: no condition. Errors: 400 naming the tuple. */
  parseFilter(address: TableAddress, filters: { all?: unknown; any?: unknown }): RecordFilter;
}
