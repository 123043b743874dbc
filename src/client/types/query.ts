import type { GeoPoint } from "../../kernel/records/geo.ts";
import type { CheckedPath, WithRelated } from "../../server/config/typed/expand.ts";
import type {
  AggregatedOf,
  FieldOf,
  GeoFieldOf,
  GroupingOf,
  OperandOf,
  OperatorOf,
  SelectionOf,
  ValueAt,
} from "../../server/config/typed/fields.ts";
import type { FilterIn } from "../../server/config/typed/filters.ts";
import type { RecordOf } from "../../server/config/typed/records.ts";
import type { LiveQuery } from "../live/types.ts";
import type { QueryDescription } from "../tables/description.ts";
import type { ChangesOfSchema } from "./records.ts";

/** Page of a list. */
export interface Page<Item> {
  items: Item[];
  /** Number of matching records; null if not counted. */
  total: number | null;
  /** Whether more records follow. */
  hasMore: boolean;
  /** Cursor for `after` of the next page; null on the last one. */
  cursor: string | null;
}

export interface Cancellable {
  /** Aborts the request, which rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface FileSigning {
  /** Seconds for which the `url` of each file is good without a token, as in `<img>`: 1 to 604,800. Default: none is signed. */
  signFiles?: number;
}

/** Options that select a part of a list. Without any: the first page. */
export interface ListOptions extends Cancellable, FileSigning {
  /** Cursor of the previous page. */
  after?: string;
  /** Cursor before whose position the page ends, in the same order. */
  before?: string;
  /** Number of records to skip. `after` is faster on long lists. */
  offset?: number;
  /** Whether to count. With false, `total` is null. */
  total?: boolean;
}

/** Page of a list by its number. */
export interface NumberedPage<Item> {
  items: Item[];
  /** Number of matching records; null where the read rule looks at each record. */
  total: number | null;
  page: number;
  perPage: number;
}

export interface PageOptions extends Cancellable, FileSigning {
  /** Number of items of a page; that of `limit` by default, or 100. */
  perPage?: number;
}

export interface SearchOptions extends Cancellable, FileSigning {
  /** `hybrid`: by words and by meaning, where the table has `embed`; by words by default. */
  mode?: "words" | "hybrid";
  offset?: number;
  /** Text before each match; `<mark>` by default. With custom marks, highlights are not HTML-escaped. */
  highlightPre?: string;
  highlightPost?: string;
}

/** Page of a search. */
export type SearchPage<Item> = Omit<Page<Item>, "cursor">;

/** Results of a search. Awaited, it is sent, and gives one page. */
export interface SearchResults<Item> extends Promise<SearchPage<Item>> {
  readonly description: QueryDescription;
  /** Starts a live query of the results, in their order. Without `limit` it has up to 100 items. */
  live(): LiveQuery<Item>;
}

/** Record near to another one; `similarity` is the cosine between both vectors. */
export type Near<Item> = Item & { similarity: number };

/** Record found by a search. `highlights` has the matching texts with marks, by field. */
export type Found<Item> = Item & { highlights: { [field: string]: string } };

export interface AggregateOptions<R, Selected extends string, Grouped extends string> extends Cancellable {
  select: readonly Selected[];
  groupBy?: readonly Grouped[];
  /** Sort terms; by default the groups, ascending. */
  sort?: readonly (NoInfer<Selected | Grouped> | readonly [NoInfer<Selected | Grouped>, "asc" | "desc"])[];
  /** Number of groups; 100 by default, 1,000 at most. */
  limit?: number;
  /** Time zone of days, weeks and so on; UTC by default. */
  timezone?: string;
  /** Used by the compiler only. */
  "~record"?: R;
}

/** Number of records that a query write found, and of those it changed: rules and hooks may refuse some. */
export interface WriteCounts {
  processed: number;
  succeeded: number;
}

/** Source of items of one type. */
export interface Queryable<Item> {
  readonly description: QueryDescription;
  /** Starts a live query. Without `limit` it has up to 1,000 items. */
  live(): LiveQuery<Item>;
  /** Returns one page. `limit` is 100 by default, and 1,000 at most. */
  list(options?: ListOptions): Promise<Page<Item>>;
}

/**
 * Query of a table. Immutable: each method returns another query. `Row`: the fields of its items; `Path`: their expanded paths.
 */
export interface Query<Tables, Name extends keyof Tables & string, Row, Path extends string = never>
  extends Queryable<WithRelated<Tables, Name, Row, Path>> {
  /**
   * Keeps only records that match the filter: a list of conditions, groups and relations, or one of these such as `anyOf(…)` or
   * `some(table, …)`.
   */
  where(filter: FilterIn<Tables, Name>): Query<Tables, Name, Row, Path>;
  /** Keeps only matching records. All conditions must match; at most 100. */
  where<
    Field extends FieldOf<RecordOf<Tables[Name]>>,
    Operator extends OperatorOf<ValueAt<RecordOf<Tables[Name]>, Field>>,
  >(
    field: Field,
    operator: Operator,
    value: OperandOf<ValueAt<RecordOf<Tables[Name]>, Field>, Operator>,
  ): Query<Tables, Name, Row, Path>;
  /** Adds an alternative: one of the `orWhere` conditions must match, besides all `where` conditions; at most 5. */
  orWhere<
    Field extends FieldOf<RecordOf<Tables[Name]>>,
    Operator extends OperatorOf<ValueAt<RecordOf<Tables[Name]>, Field>>,
  >(
    field: Field,
    operator: Operator,
    value: OperandOf<ValueAt<RecordOf<Tables[Name]>, Field>, Operator>,
  ): Query<Tables, Name, Row, Path>;
  /** Sorts by a field, ascending by default. Further sorts order records that are equal so far. */
  sort(field: FieldOf<RecordOf<Tables[Name]>>, direction?: "asc" | "desc"): Query<Tables, Name, Row, Path>;
  /**
   * Sorts by the distance of a `geo` field from a point, nearest first, in place of `sort`. Each item has its `distance` in metres;
   * those without a point are last, without it.
   */
  near(
    field: GeoFieldOf<RecordOf<Tables[Name]>>,
    point: GeoPoint,
  ): Query<Tables, Name, Omit<Row, "distance"> & { distance?: number }, Path>;
  /** Limits the number of items of a page: 1 to 1,000. */
  limit(count: number): Query<Tables, Name, Row, Path>;
  /** Selects fields. The id is always included. */
  fields<Field extends keyof RecordOf<Tables[Name]> & string>(
    ...names: readonly Field[]
  ): Query<Tables, Name, Pick<RecordOf<Tables[Name]>, Field | ("id" & keyof RecordOf<Tables[Name]>)>, Path>;
  /** Adds records that the items refer to, or that refer to them, as `item.expand[path]`. */
  expand<const Added extends string>(
    ...paths: readonly (Added & CheckedPath<Tables, Name, Added>)[]
  ): Query<Tables, Name, Row, Path | Added>;

  /** Returns the first item; null if there is none. */
  first(options?: Cancellable & FileSigning): Promise<WithRelated<Tables, Name, Row, Path> | null>;
  /** Returns a page by its number, from 1. For long lists `pages` is faster. */
  page(number: number, options?: PageOptions): Promise<NumberedPage<WithRelated<Tables, Name, Row, Path>>>;
  count(options?: Cancellable): Promise<number>;
  /** Searches the texts of the table's `fts`. All words must occur; the last one may be a prefix. */
  search(text: string, options?: SearchOptions): SearchResults<Found<WithRelated<Tables, Name, Row, Path>>>;
  /**
   * Returns the records nearest in meaning to one, nearest first. `limit` is 10 by default, and at most 100. Empty where the record
   * has no vector.
   */
  nearest(id: string, options?: Cancellable & FileSigning): Promise<Near<WithRelated<Tables, Name, Row, Path>>[]>;
  /** Counts, sums and compares the matching records, by groups. */
  aggregate<
    const Selected extends SelectionOf<RecordOf<Tables[Name]>>,
    const Grouped extends GroupingOf<RecordOf<Tables[Name]>> = never,
  >(
    options: AggregateOptions<RecordOf<Tables[Name]>, Selected, Grouped>,
  ): Promise<AggregatedOf<RecordOf<Tables[Name]>, Selected, Grouped>[]>;
  /** Iterates over all pages, one request each. */
  pages(options?: Cancellable & FileSigning): AsyncIterableIterator<WithRelated<Tables, Name, Row, Path>[]>;
  /** Updates up to 500 matching records. Errors: `invalid` without any condition, and with a sort, limit, fields or expand. */
  update(changes: ChangesOfSchema<Tables[Name]>): Promise<WriteCounts>;
  /** Deletes up to 500 matching records. Errors: as `update`. */
  delete(): Promise<WriteCounts>;
}
