import type { JsonValue } from "../../../kernel/json/json.ts";
import type { GeoPoint } from "../../../kernel/records/geo.ts";
import type { TableRecord } from "../records.ts";
import type { AnyTables } from "../typed/declared.ts";
import type { CheckedPath, WithRelated } from "../typed/expand.ts";
import type {
  AggregatedOf,
  FieldOf,
  GeoFieldOf,
  GroupingOf,
  OperandOf,
  OperatorOf,
  SelectionOf,
  SortFieldOf,
  ValueAt,
} from "../typed/fields.ts";
import type { FilterOf } from "../typed/filters.ts";

/**
 * The items of a query: records, with the `expand` of these paths. Where the tables are not known any paths are taken, so that code for
 * any config takes the tables of one.
 */
export type ItemOf<Tables, Name, Row, Path> = string extends keyof Tables
  ? [Path] extends [never]
    ? Row
    : Row & { expand: { [path: string]: JsonValue } }
  : WithRelated<Tables, Name, Row, Path>;

/** Narrows and orders a query. Each method returns another query, of type `Self`. */
export interface Narrowing<R, Self> {
  /** Keeps the records that match a filter: a list of conditions and groups, or a group such as `anyOf(…)`. */
  where(filter: FilterOf<R>): Self;
  /** Keeps the records that match a condition. All conditions must match; at most 100. */
  where<Field extends FieldOf<R>, Operator extends OperatorOf<ValueAt<R, Field>>>(
    field: Field,
    operator: Operator,
    value: OperandOf<ValueAt<R, Field>, Operator>,
  ): Self;
  /** Adds an alternative: one of the `orWhere` conditions must match, besides all `where` conditions. */
  orWhere<Field extends FieldOf<R>, Operator extends OperatorOf<ValueAt<R, Field>>>(
    field: Field,
    operator: Operator,
    value: OperandOf<ValueAt<R, Field>, Operator>,
  ): Self;
  /** Sorts by a field, ascending by default. Further sorts order records that are equal so far. */
  sort(field: SortFieldOf<R>, direction?: "asc" | "desc"): Self;
  /** Limits the number of records: 1 to 1,000. */
  limit(count: number): Self;
}

/** A page of a list by its number. */
export interface NumberedPage<Item> {
  items: Item[];
  /** The number of matches; null where nothing is counted. */
  total: number | null;
  page: number;
  perPage: number;
}

export interface Aggregation<R, Selected extends string, Grouped extends string> {
  /** `count()`, `sum(field)`, `avg(field)`, `min(field)`, `max(field)`. */
  select: readonly Selected[];
  /** Fields to group by; a datetime may have `:minute`, `:hour`, `:day`, `:week`, `:month` or `:year`, a date those from `:day`. */
  groupBy?: readonly Grouped[];
  /** The order by names of `groupBy` and `select`. Default: by the groups, ascending. */
  sort?: readonly (NoInfer<Selected | Grouped> | readonly [NoInfer<Selected | Grouped>, "asc" | "desc"])[];
  /** The maximum number of groups. Default 100, at most 1,000. */
  limit?: number;
  /** The time zone of days, weeks and so on, such as `Europe/Berlin`. Default UTC. */
  timezone?: string;
  /** Used by the compiler only. */
  "~record"?: R;
}

/** Selects a part of a list. Without any: the first page. */
export interface PageOptions {
  /** The cursor of the previous page. */
  after?: string;
  /** The cursor before whose position the page ends, in the same order. */
  before?: string;
  /** The number of records to skip. `after` is faster on long lists. */
  offset?: number;
  /** Whether to count the matches; false: `total` is null. Default true. */
  total?: boolean;
}

export interface ListResult<R = TableRecord> {
  items: R[];
  total: number | null;
  page: number | null;
  perPage: number | null;
  hasMore: boolean | null;
  cursor: string | null;
}

/**
 * A query of a table, the same as the client's. It never changes: each method returns another one. `Row`: the fields of its items;
 * `Path`: their expanded paths.
 */
export interface TableQuery<R = TableRecord, Row = R, Tables = AnyTables, Name = string, Path extends string = never>
  extends Narrowing<R, TableQuery<R, Row, Tables, Name, Path>> {
  /**
   * Sorts by the distance of a `geo` field from a point, nearest first, in place of `sort`. Each item has its `distance` in metres;
   * those without a point are last, without it.
   */
  near(
    field: GeoFieldOf<R>,
    point: GeoPoint,
  ): TableQuery<R, Omit<Row, "distance"> & { distance?: number }, Tables, Name, Path>;
  /** Selects fields. The id is always included. */
  fields<Field extends keyof R & string>(
    ...names: readonly Field[]
  ): TableQuery<R, Pick<R, Field | ("id" & keyof R)>, Tables, Name, Path>;
  /** Adds the records that the items refer to, or that refer to them, as `item.expand[path]`: `author`, `comments(postId).author`. */
  expand<const Added extends string>(
    ...paths: readonly (Added & CheckedPath<Tables, Name, Added>)[]
  ): TableQuery<R, Row, Tables, Name, Path | Added>;
  /** Returns the first item; null when there is none. */
  first(): Promise<ItemOf<Tables, Name, Row, Path> | null>;
  /** Returns a page of items. `limit` is 100 by default, and at most 1,000. */
  list(options?: PageOptions): Promise<ListResult<ItemOf<Tables, Name, Row, Path>>>;
  /** Returns a page by its number, from 1. `perPage` is that of `limit` by default, or 100. */
  page(number: number, options?: { perPage?: number }): Promise<NumberedPage<ItemOf<Tables, Name, Row, Path>>>;
  count(): Promise<number>;
  /** Searches the texts of the table's `fts`. All words must occur; the last one may be a prefix. */
  search(
    q: string,
    options?: {
      offset?: number /** `hybrid`: by words and by meaning, where the table has `embed`. */;
      mode?: "words" | "hybrid";
    },
  ): Promise<ListResult<ItemOf<Tables, Name, Row, Path>>>;
  /**
   * Returns the records nearest in meaning to one, nearest first; `limit` is 10 by default, and at most 100. `similarity` is 1 for the
   * same direction. Empty where the record has no vector.
   */
  nearest(id: string): Promise<(ItemOf<Tables, Name, Row, Path> & { similarity: number })[]>;
  /** Counts, sums and compares the matches, by groups. A group has members by the names of `groupBy` and `select`. */
  aggregate<const Selected extends SelectionOf<R>, const Grouped extends GroupingOf<R> = never>(
    options: Aggregation<R, Selected, Grouped>,
  ): Promise<AggregatedOf<R, Selected, Grouped>[]>;
}

/** A list of a synchronous query. Nothing is counted, and there is no cursor. */
export interface RecordList<Item> {
  items: Item[];
  total: null;
  /** Whether there are more matches than `limit`. */
  hasMore: boolean;
  cursor: null;
}

/** A synchronous query, in a transaction, a rule or a hook: as `TableQuery`, without promises. */
export interface RecordQuery<R = TableRecord, Tables = AnyTables, Name = string, Path extends string = never>
  extends Narrowing<R, RecordQuery<R, Tables, Name, Path>> {
  /** Adds the records that the items refer to, or that refer to them: see `TableQuery`. */
  expand<const Added extends string>(
    ...paths: readonly (Added & CheckedPath<Tables, Name, Added>)[]
  ): RecordQuery<R, Tables, Name, Path | Added>;
  /** Returns the first match; null when there is none. */
  first(): ItemOf<Tables, Name, R, Path> | null;
  /** Returns the matches, by id or in the order of `sort`. `limit` is 1,000 by default and at most. */
  list(): RecordList<ItemOf<Tables, Name, R, Path>>;
  /** Returns a page by its number, from 1, with `total` null. `perPage` is that of `limit` by default, or 100. */
  page(number: number, options?: { perPage?: number }): NumberedPage<ItemOf<Tables, Name, R, Path>>;
  exists(): boolean;
  count(): number;
  /** Counts, sums and compares the matches, by groups. Units such as `:day` are for `TableQuery` alone. */
  aggregate<const Selected extends SelectionOf<R>, const Grouped extends GroupingOf<R> = never>(
    options: Omit<Aggregation<R, Selected, Grouped>, "timezone">,
  ): AggregatedOf<R, Selected, Grouped>[];
}
