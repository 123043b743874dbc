import type { Filter, TableRecord } from "../records.ts";

export interface ListQuery {
  filter?: Filter;
  orFilter?: Filter;
  /** `field:asc`, `field:desc`, comma-separated. */
  sort?: string;
  limit?: number;
  offset?: number;
  after?: string;
  before?: string;
  /** false: `total` is null and nothing is counted. Default true. */
  total?: boolean;
  /** References to follow, comma-separated: `author`, `comments(postId).author`. Each record then has `expand`. */
  expand?: string;
}

export interface ListResult {
  items: TableRecord[];
  total: number | null;
  page: number | null;
  perPage: number | null;
  hasMore: boolean | null;
  cursor: string | null;
}

export interface BatchOperations {
  inserts?: readonly TableRecord[];
  updates?: readonly { id: string; data: TableRecord }[];
  deletes?: readonly string[];
}

export interface BatchResult {
  inserted: TableRecord[];
  updated: TableRecord[];
  deleted: { id: string }[];
}

/** A table without its rules: validation and limits apply, and the calling code checks rights. */
export interface TableAccessor {
  /** null when there is no such record. */
  get(id: string): Promise<TableRecord | null>;
  list(query?: ListQuery): Promise<ListResult>;
  count(query?: Pick<ListQuery, "filter" | "orFilter">): Promise<number>;
  search(
    q: string,
    query?: Pick<ListQuery, "filter" | "orFilter" | "sort" | "limit" | "offset" | "expand">,
  ): Promise<ListResult>;
  insert(record: TableRecord): Promise<TableRecord>;
  upsert(record: TableRecord, options?: { conflictTarget?: string }): Promise<TableRecord>;
  update(id: string, changes: TableRecord): Promise<TableRecord>;
  delete(id: string): Promise<void>;
  batch(operations: BatchOperations): Promise<BatchResult>;
}

export interface DatabaseAccessor {
  table(name: string): TableAccessor;
}
