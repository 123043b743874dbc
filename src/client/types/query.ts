import type { RecordOf } from "../../server/config/typed/records.ts";
import type { LiveQuery } from "../live/types.ts";
import type { QueryDescription } from "../tables/description.ts";
import type { CheckedPath, WithRelated } from "./expand.ts";
import type { FieldOf, GroupingOf, GroupOf, OperandOf, OperatorOf, SelectionOf, ValueAt } from "./fields.ts";
import type { ChangesOfSchema } from "./records.ts";

/** A page of a list. */
export interface Page<Item> {
  items: Item[];
  /** The number of matching records; null where it was not counted. */
  total: number | null;
  /** Whether there are records after these. */
  hasMore: boolean;
  /** For `after` of the next page; null on the last one. */
  cursor: string | null;
}

export interface Cancellable {
  /** Ends the request; it rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Which part of a list. Without any of them: the first page. */
export interface ListOptions extends Cancellable {
  /** The `cursor` of the page before. */
  after?: string;
  /** A cursor: the records just before it, in the same order. */
  before?: string;
  /** Records to skip. Long lists are faster with `after`. */
  offset?: number;
  /** false: `total` is null, and nothing is counted. */
  total?: boolean;
}

export interface SearchOptions extends Cancellable {
  offset?: number;
  /** Text before each match; `<mark>` by default. With marks of your own highlights are not escaped for HTML. */
  highlightPre?: string;
  highlightPost?: string;
}

/** A record that a search has found; `highlights` has the texts in which words were found, marked, by field. */
export type Found<Item> = Item & { highlights: { [field: string]: string } };

export interface AggregateOptions<R, Selected extends string, Grouped extends string> extends Cancellable {
  select: readonly Selected[];
  groupBy?: readonly Grouped[];
  /** By default by the groups, in ascending order. */
  sort?: readonly (NoInfer<Selected | Grouped> | readonly [NoInfer<Selected | Grouped>, "asc" | "desc"])[];
  /** 100 by default, 1,000 at most. */
  limit?: number;
  /** The zone of days, weeks and so on; UTC by default. */
  timezone?: string;
  /** For the compiler only. */
  "~record"?: R;
}

/** How many records a query write has found, and how many of them it changed: rules and hooks may refuse some. */
export interface WriteCounts {
  processed: number;
  succeeded: number;
}

/** What gives items of one type. */
export interface Queryable<Item> {
  readonly description: QueryDescription;
  /** Keeps the items up to date. Without `limit` it has up to 1,000. */
  live(): LiveQuery<Item>;
  /** One page. `limit` is 100 by default, and 1,000 at most. */
  list(options?: ListOptions): Promise<Page<Item>>;
}

/**
 * A query of a table. It never changes: each method gives another query. `Row`: the fields of its items, `Path`: what they are
 * expanded by.
 */
export interface Query<Tables, Name extends keyof Tables & string, Row, Path extends string = never>
  extends Queryable<WithRelated<Tables, Name, Row, Path>> {
  /** Only records that match. Several conditions must all match; at most 50. */
  where<
    Field extends FieldOf<RecordOf<Tables[Name]>>,
    Operator extends OperatorOf<ValueAt<RecordOf<Tables[Name]>, Field>>,
  >(
    field: Field,
    operator: Operator,
    value: OperandOf<ValueAt<RecordOf<Tables[Name]>, Field>, Operator>,
  ): Query<Tables, Name, Row, Path>;
  /** One of the `orWhere` conditions must match, besides all `where` conditions; at most 5. */
  orWhere<
    Field extends FieldOf<RecordOf<Tables[Name]>>,
    Operator extends OperatorOf<ValueAt<RecordOf<Tables[Name]>, Field>>,
  >(
    field: Field,
    operator: Operator,
    value: OperandOf<ValueAt<RecordOf<Tables[Name]>, Field>, Operator>,
  ): Query<Tables, Name, Row, Path>;
  /** Ascending by default. A further sort orders the records that are equal by those before. */
  sort(field: FieldOf<RecordOf<Tables[Name]>>, direction?: "asc" | "desc"): Query<Tables, Name, Row, Path>;
  /** Items of a page: 1 to 1,000. */
  limit(count: number): Query<Tables, Name, Row, Path>;
  /** Only these fields, and the id. */
  fields<Field extends keyof RecordOf<Tables[Name]> & string>(
    ...names: readonly Field[]
  ): Query<Tables, Name, Pick<RecordOf<Tables[Name]>, Field | ("id" & keyof RecordOf<Tables[Name]>)>, Path>;
  /** Adds records that the items refer to, or that refer to them, as `item.expand[path]`. */
  expand<const Added extends string>(
    ...paths: readonly (Added & CheckedPath<Tables, Name, Added>)[]
  ): Query<Tables, Name, Row, Path | Added>;

  /** The first item; null when there is none. */
  first(options?: Cancellable): Promise<WithRelated<Tables, Name, Row, Path> | null>;
  count(options?: Cancellable): Promise<number>;
  /** Searches the texts of the table's `fts`. All words must occur; the last one may be unfinished. */
  search(
    text: string,
    options?: SearchOptions,
  ): Promise<Omit<Page<Found<WithRelated<Tables, Name, Row, Path>>>, "cursor">>;
  /** Counts, sums and compares the matching records, by groups. */
  aggregate<
    const Selected extends SelectionOf<RecordOf<Tables[Name]>>,
    const Grouped extends GroupingOf<RecordOf<Tables[Name]>> = never,
  >(
    options: AggregateOptions<RecordOf<Tables[Name]>, Selected, Grouped>,
  ): Promise<GroupOf<RecordOf<Tables[Name]>, Selected, Grouped>[]>;
  /** All pages, one request each. */
  pages(options?: Cancellable): AsyncIterableIterator<WithRelated<Tables, Name, Row, Path>[]>;
  /** Changes up to 500 matching records. Errors: `invalid` without any condition, and with a sort, limit, fields or expand. */
  update(changes: ChangesOfSchema<Tables[Name]>): Promise<WriteCounts>;
  /** Deletes up to 500 matching records. Errors: as `update`. */
  delete(): Promise<WriteCounts>;
}
