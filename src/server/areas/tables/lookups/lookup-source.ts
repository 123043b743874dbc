import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { RecordSource, SayFormer } from "../../../../kernel/records/record-query.ts";
import type { Transaction } from "../../../db/index.ts";
import type { ParsedFilter } from "../filters/filter.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";

/** Source of records: a file, or the transaction of a write. null: the instance does not exist. */
export type Queries = Pick<Transaction, "query"> | null;

/** Session of a table's lookup. */
export interface LookupSource {
  readonly table: Table;
  /** Returns the result for the key, from the cache or from `read`, which also reports what it depends on. */
  once<T>(key: string, read: (queries: Queries) => T): T;
  watched(fields: readonly string[], values: readonly JsonValue[]): void;
  /** Called before a lookup whose filter has relations: its result depends on other tables too. */
  related(filter: ParsedFilter): void;
  took(records: number): void;
  /** Returns the lookup of another table, of the file or of another namespace without instances. */
  lookupOf(model: TableModel): Pick<RecordSource, "find">;
  readonly say: SayFormer;
}
