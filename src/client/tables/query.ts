import type { JsonObject } from "../../kernel/json/json.ts";
import { FluentQuery, filterParameters, listParameters } from "../../kernel/records/query.ts";
import type { FilterOperator } from "../../server/config/records.ts";
import type { ClientContext } from "../context.ts";
import { later } from "../later.ts";
import { liveOf } from "../live/live.ts";
import type { LiveQuery } from "../live/types.ts";
import type { QueryParameters } from "../transport/types.ts";
import type {
  Cancellable,
  FileSigning,
  Found,
  ListOptions,
  Near,
  NumberedPage,
  Page,
  PageOptions,
  SearchOptions,
  SearchPage,
  SearchResults,
  WriteCounts,
} from "../types/query.ts";
import { type QueryDescription, tablePath } from "./description.ts";
import type { Aggregate } from "./wide-queries.ts";

type Item = JsonObject;

/** `Query` of any table. The types of `client.db` add the fields of each table. */
export class TableQuery extends FluentQuery<TableQuery, FilterOperator, QueryDescription> {
  readonly #context: ClientContext;

  constructor(context: ClientContext, description: QueryDescription) {
    super(description);
    this.#context = context;
  }

  protected with(change: Partial<QueryDescription>): TableQuery {
    return new TableQuery(this.#context, { ...this.description, ...change });
  }

  /** Sends a GET request below the table's path. */
  #read<T>(path: string, query: QueryParameters, signal: AbortSignal | undefined) {
    return this.#context.transport.request<T>("GET", tablePath(this.description) + path, { query, signal });
  }

  #list<T>(path: string, { signal, ...paging }: ListOptions & Cancellable = {}): Promise<Page<T>> {
    return this.#read(path, { ...listParameters(this.description), ...paging }, signal);
  }

  list(options?: ListOptions & Cancellable): Promise<Page<Item>> {
    return this.#list("", options);
  }

  async page(number: number, options?: PageOptions): Promise<NumberedPage<Item>> {
    return (await later()).page(this, number, options);
  }

  async first(options?: Cancellable & FileSigning): Promise<Item | null> {
    return (await this.limit(1).list({ ...options, total: false })).items[0] ?? null;
  }

  async nearest(id: string, options?: Cancellable & FileSigning): Promise<Near<Item>[]> {
    return (await this.#list<Near<Item>>(`/${encodeURIComponent(id)}/nearest`, options)).items;
  }

  async count({ signal }: Cancellable = {}): Promise<number> {
    return (await this.#read<{ total: number }>("/count", filterParameters(this.description), signal)).total;
  }

  search(text: string, { signal, ...marks }: SearchOptions = {}): SearchResults<Found<Item>> {
    const query = this.with({ search: { ...marks, q: text } });
    const { description } = query;
    let sent: Promise<SearchPage<Found<Item>>> | undefined;
    // Sent when it is awaited: `live` needs no page.
    const page = () => {
      sent ??= later().then((loaded) => loaded.search(this.#context.transport, description, signal));
      return sent;
    };
    return {
      description,
      // The records of a search have `highlights`.
      live: () => query.live() as LiveQuery<Found<Item>>,
      // biome-ignore lint/suspicious/noThenProperty: it is a promise, too
      then: (...given) => page().then(...given),
      catch: (...given) => page().catch(...given),
      finally: (...given) => page().finally(...given),
      [Symbol.toStringTag]: "Promise",
    };
  }

  async aggregate(options: Aggregate): Promise<Item[]> {
    return (await later()).aggregate(this.#context.transport, this.description, options);
  }

  async *pages(options?: Cancellable & FileSigning): AsyncIterableIterator<Item[]> {
    yield* (await later()).pages((paging) => this.list({ ...options, ...paging }));
  }

  live(): LiveQuery<Item> {
    return liveOf(this.#context).open(this.description);
  }

  async update(data: JsonObject): Promise<WriteCounts> {
    return (await later()).writeAll(this.#context.transport, this.description, { action: "update", data });
  }

  async delete(): Promise<WriteCounts> {
    return (await later()).writeAll(this.#context.transport, this.description, { action: "delete" });
  }
}
