import type { JsonObject } from "../../kernel/json/json.ts";
import type { Conditions } from "../../kernel/records/filter-group.ts";
import type { GeoPoint } from "../../kernel/records/geo.ts";
import type { ClientContext } from "../context.ts";
import { liveOf } from "../live/live.ts";
import type { LiveQuery } from "../live/types.ts";
import type {
  Cancellable,
  Found,
  ListOptions,
  Page,
  SearchOptions,
  SearchPage,
  SearchResults,
  WriteCounts,
} from "../types/query.ts";
import { type Condition, filterParameters, listParameters, type QueryDescription, tablePath } from "./description.ts";
import type { Aggregate } from "./wide-queries.ts";

type Item = JsonObject;

/** Rarely used methods are loaded on first use. */
const wide = () => import("../small-features.ts");

/** `Query` of any table. The types of `client.db` add the fields of each table. */
export class TableQuery {
  readonly description: QueryDescription;
  readonly #context: ClientContext;

  constructor(context: ClientContext, description: QueryDescription) {
    this.#context = context;
    this.description = description;
  }

  #with(change: Partial<QueryDescription>): TableQuery {
    return new TableQuery(this.#context, { ...this.description, ...change });
  }

  where(...given: Condition | readonly [filter: Conditions<Condition>]): TableQuery {
    // A whole filter, or the parts of a condition.
    const added = given.length === 1 ? given[0] : [given];
    return this.#with({ conditions: this.description.conditions.concat(added) });
  }

  orWhere(...condition: Condition): TableQuery {
    return this.#with({ or: [...this.description.or, condition] });
  }

  sort(field: string, direction: "asc" | "desc" = "asc"): TableQuery {
    return this.#with({ sort: [...this.description.sort, [field, direction]] });
  }

  near(field: string, { lat, lng }: GeoPoint): TableQuery {
    return this.#with({ near: { field, lat, lng } });
  }

  limit(count: number): TableQuery {
    return this.#with({ limit: count });
  }

  fields(...names: readonly string[]): TableQuery {
    return this.#with({ fields: names });
  }

  expand(...paths: readonly string[]): TableQuery {
    return this.#with({ expand: [...this.description.expand, ...paths] });
  }

  /** Sends a GET request below the table's path. */
  #read<T>(path: string, query: Record<string, string | number | boolean | undefined | null>, options?: Cancellable) {
    const { transport } = this.#context;
    return transport.request<T>("GET", tablePath(this.description) + path, { query, signal: options?.signal });
  }

  list({ signal, ...paging }: ListOptions & Cancellable = {}): Promise<Page<Item>> {
    return this.#read("", { ...listParameters(this.description), ...paging }, { ...(signal && { signal }) });
  }

  async first(options?: Cancellable): Promise<Item | null> {
    const { items } = await this.limit(1).list({ ...options, total: false });
    return items[0] ?? null;
  }

  async count(options?: Cancellable): Promise<number> {
    return (await this.#read<{ total: number }>("/count", filterParameters(this.description), options)).total;
  }

  search(text: string, { signal, ...marks }: SearchOptions = {}): SearchResults<Found<Item>> {
    const query = this.#with({ search: { ...marks, q: text } });
    const { description } = query;
    let sent: Promise<SearchPage<Found<Item>>> | undefined;
    // Sent when it is awaited: `live` needs no page.
    const page = () => {
      sent ??= wide().then((loaded) => loaded.search(this.#context.transport, description, signal));
      return sent;
    };
    return {
      description,
      // The records of a search have `highlights`.
      live: () => query.live() as LiveQuery<Found<Item>>,
      // biome-ignore lint/suspicious/noThenProperty: it is a promise, too
      then: (...given) => page().then(...given),
      catch: (given) => page().catch(given),
      finally: (given) => page().finally(given),
      [Symbol.toStringTag]: "Promise",
    };
  }

  async aggregate(options: Aggregate): Promise<Item[]> {
    return (await wide()).aggregate(this.#context.transport, this.description, options);
  }

  async *pages(options?: Cancellable): AsyncIterableIterator<Item[]> {
    let page = await this.list({ ...options, total: false });
    for (let offset = 0; page.items.length > 0; ) {
      yield page.items;
      offset += page.items.length;
      if (!page.hasMore) return;
      // A list by distance has no cursor.
      const next = page.cursor === null ? { offset, total: false } : { after: page.cursor };
      page = await this.list({ ...options, ...next });
    }
  }

  live(): LiveQuery<Item> {
    return liveOf(this.#context).open(this.description);
  }

  async update(changes: JsonObject): Promise<WriteCounts> {
    return (await wide()).writeAll(this.#context.transport, this.description, { action: "update", data: changes });
  }

  async delete(): Promise<WriteCounts> {
    return (await wide()).writeAll(this.#context.transport, this.description, { action: "delete" });
  }
}
