import type { JsonValue } from "../../../kernel/json/json.ts";
import type { TableRecord } from "../records.ts";
import type { FilterOf } from "../typed/filters.ts";
import type { ChangesOf, WrittenOf } from "../typed/records.ts";
import type { EnqueueJobOptions } from "./jobs.ts";

/**
 * A table inside `app.db(…).transaction`. All methods are synchronous and see the transaction's earlier changes. Records passed in
 * and returned are copies.
 */
export interface TransactionTable<R = TableRecord> {
  /** Returns the record; null when there is none. */
  get(id: string): R | null;
  /** Returns the first match by id; null when there is none. */
  first(filter: FilterOf<R>): R | null;
  /** Returns the matches by id. `limit` is 1,000 by default and at most. No index is needed; without one every record is examined. */
  list(filter: FilterOf<R>, options?: { limit?: number }): R[];
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
