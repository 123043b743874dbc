import type { TableRecord } from "../records.ts";
import type { AnyTables } from "../typed/declared.ts";
import type { AggregatedOf, GroupingOf, SelectionOf } from "../typed/fields.ts";
import type { FilterOf } from "../typed/filters.ts";
import type { ChangesOf, WrittenOf } from "../typed/records.ts";
import type { Aggregation, ListResult, PageOptions, TableQuery } from "./queries.ts";
import type { DatabaseTransaction } from "./transactions.ts";

/** The options of lists until 0.4. Write `where(…).sort(…).limit(…).expand(…).list()`. A filter is never undefined or null. */
export interface ListQuery<R = TableRecord> {
  filter?: FilterOf<R>;
  orFilter?: FilterOf<R>;
  /** The order: `field:asc`, `field:desc`, comma-separated. */
  sort?: string;
  /** The order by the distance of a `geo` field, in place of `sort`: `at:48.2:16.37`. Each record with a point then has `distance`. */
  near?: string;
  limit?: number;
  offset?: number;
  after?: string;
  before?: string;
  /** Whether to count the matches; false: `total` is null. Default true. */
  total?: boolean;
  /** References to follow, comma-separated: `author`, `comments(postId).author`. Each record then has `expand`. */
  expand?: string;
}

/** The options of aggregates until 0.4. Write `where(…).aggregate({ select: ["count()"], groupBy: ["genre"] })`. */
export interface AggregateQuery<R = TableRecord> {
  /** The aggregates: `count()`, `sum(field)`, `avg(field)`, `min(field)`, `max(field)`, comma-separated. Default `count()`. */
  select?: string;
  /** The fields to group by, comma-separated; a datetime may have `:minute`, `:hour`, `:day`, `:week`, `:month` or `:year`, a date those from `:day`. */
  groupBy?: string;
  filter?: FilterOf<R>;
  orFilter?: FilterOf<R>;
  /** The order by names of `groupBy` and `select`, such as `count():desc`. Default: by the groups. */
  sort?: string;
  /** The maximum number of groups. Default 100, at most 1,000. */
  limit?: number;
  /** The time zone of days, weeks and so on, such as `Europe/Berlin`. Default UTC. */
  timezone?: string;
}

export interface BatchOperations<R = TableRecord> {
  inserts?: readonly WrittenOf<R>[];
  updates?: readonly { id: string; data: ChangesOf<R> }[];
  deletes?: readonly string[];
}

export interface BatchResult<R = TableRecord> {
  inserted: R[];
  updated: R[];
  deleted: { id: string }[];
}

/**
 * A table without its rules: validation and limits apply; the calling code checks rights. It is a query of all its records. An option
 * that a method does not have is 400, never ignored.
 */
export interface TableAccessor<R = TableRecord, Tables = AnyTables, Name = string>
  extends TableQuery<R, R, Tables, Name> {
  /** Returns the record; null when there is none. */
  get(id: string): Promise<R | null>;
  list(options?: PageOptions): Promise<ListResult<R>>;
  /** @deprecated Until 0.4. */
  list(query: ListQuery<R>): Promise<ListResult<R>>;
  count(): Promise<number>;
  /** @deprecated Until 0.4. Write `where(…).count()`. */
  count(query: Pick<ListQuery<R>, "filter" | "orFilter">): Promise<number>;
  aggregate<const Selected extends SelectionOf<R>, const Grouped extends GroupingOf<R> = never>(
    options: Aggregation<R, Selected, Grouped>,
  ): Promise<AggregatedOf<R, Selected, Grouped>[]>;
  /** @deprecated Until 0.4. The new form takes lists of names, and returns the groups. */
  aggregate(query?: AggregateQuery<R>): Promise<{ groups: TableRecord[] }>;
  search(q: string, options?: { offset?: number }): Promise<ListResult<R>>;
  /** @deprecated Until 0.4. Write `where(…).search(q)`. */
  search(
    q: string,
    query: Pick<ListQuery<R>, "filter" | "orFilter" | "sort" | "limit" | "offset" | "expand">,
  ): Promise<ListResult<R>>;
  insert(record: WrittenOf<R>): Promise<R>;
  upsert(record: WrittenOf<R>, options?: { conflictTarget?: string }): Promise<R>;
  update(id: string, changes: ChangesOf<R>): Promise<R>;
  delete(id: string): Promise<void>;
  batch(operations: BatchOperations<R>): Promise<BatchResult<R>>;
}

export interface InstanceFacts {
  id: string;
  /** The size on disk. */
  bytes: number;
  createdAt: string;
  /** The time of the last write; it may be slightly later. */
  writtenAt: string;
}

/** The instances of a namespace. Errors: 404 for a namespace without instances, 400 for an invalid id. */
export interface InstancesAccessor {
  /** Lists instances by id. `limit` is 100 by default, and at most 1,000; `after` takes the cursor, which is null on the last page. */
  list(query?: { prefix?: string; limit?: number; after?: string }): Promise<{
    instances: InstanceFacts[];
    cursor: string | null;
  }>;
  exists(id: string): Promise<boolean>;
  /**
   * Deletes the instance with all of its records, ends its subscriptions and queries, and resolves when the deletion is on disk;
   * false when there is no such instance.
   */
  delete(id: string): Promise<boolean>;
}

/** The tables of one file for the server's own access. */
export interface ServerDatabaseAccessor extends DatabaseAccessor {
  readonly instances: InstancesAccessor;
}

export interface DatabaseAccessor {
  table(name: string): TableAccessor;
  /**
   * Runs a synchronous function over all tables of this file, atomically, and resolves with its result once it is on disk. An error
   * that it throws rolls everything back and is rethrown. Hooks run; a hook or function that returns a promise is an error. For an
   * instance that does not exist yet the function runs twice: first to detect whether it changes anything. The bounds are those of
   * a batch: about 4 MiB of stored records changed, cascades of 5,000.
   */
  transaction<T>(work: (tx: DatabaseTransaction) => T extends PromiseLike<unknown> ? never : T): Promise<T>;
}
