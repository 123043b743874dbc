import type { JsonValue } from "../../../kernel/json/json.ts";
import type { TableRecord } from "../records.ts";
import type { AnyTables } from "../typed/declared.ts";
import type { FilterOf } from "../typed/filters.ts";
import type { ChangesOf, WrittenOf } from "../typed/records.ts";
import type { EnqueueJobOptions } from "./jobs.ts";
import type { RecordList, RecordQuery } from "./queries.ts";

/**
 * A table inside `app.db(…).transaction`. All methods are synchronous and see the transaction's earlier changes. Records passed in
 * and returned are copies.
 */
export interface TransactionTable<R = TableRecord, Tables = AnyTables, Name = string>
  extends RecordQuery<R, Tables, Name> {
  /** Returns the record; null when there is none. */
  get(id: string): R | null;
  first(): R | null;
  /** @deprecated Until 0.4. Write `where(…).first()`. */
  first(filter: FilterOf<R>): R | null;
  /** Returns the matches by id. No index is needed; without one every record is examined. */
  list(): RecordList<R>;
  /** @deprecated Until 0.4. Write `where(…).limit(…).list().items`. */
  list(filter: FilterOf<R>, options?: { limit?: number }): R[];
  exists(): boolean;
  /** @deprecated Until 0.4. Write `where(…).exists()`. */
  exists(filter: FilterOf<R>): boolean;
  insert(record: WrittenOf<R>): R;
  /** Updates the record with this value of `conflictTarget` (`id` by default, or a unique field), or inserts it. */
  upsert(record: WrittenOf<R>, options?: { conflictTarget?: string }): R;
  /** Updates the record; accepts operators, as PATCH does. Errors: 404 when there is no such record. */
  update(id: string, changes: ChangesOf<R>): R;
  /** Deletes the record. Errors: 404 when there is no such record. */
  delete(id: string): void;
}

/** The open transaction of `app.db(…).transaction`. It ends when its function returns; later uses throw. */
export interface DatabaseTransaction {
  table(name: string): TransactionTable;
  /**
   * Adds a job of the config if and only if the transaction commits, and returns its id. With a `key`, a job that waits or runs at
   * commit is used instead. Errors: those of `app.jobs.enqueue`; 403 with the rights of a user.
   */
  enqueue(name: string, data: JsonValue, options?: EnqueueJobOptions): string;
}
