import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { type AggregateOptions, aggregateParameters } from "../../kernel/records/aggregate-options.ts";
import { elementsOf, filterParameters, listParameters } from "../../kernel/records/query.ts";
import { localError } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";
import type {
  Cancellable,
  Found,
  ListOptions,
  NumberedPage,
  Page,
  PageOptions,
  SearchPage,
  WriteCounts,
} from "../types/query.ts";
import { type QueryDescription, tablePath } from "./description.ts";

/** Options of an aggregate over untyped field names. */
export interface Aggregate extends AggregateOptions, Cancellable {}

export async function search(
  transport: Transport,
  query: QueryDescription,
  signal: AbortSignal | undefined,
): Promise<SearchPage<Found<JsonObject>>> {
  const parameters = { ...listParameters(query), ...query.search };
  const path = `${tablePath(query)}/search`;
  const { items, total } = await transport.request<Page<Found<JsonObject>>>("GET", path, { query: parameters, signal });
  // A search has a total.
  return { items, total, hasMore: (query.search?.offset ?? 0) + items.length < (total as number) };
}

/** Yields the items of one page after the other. */
export async function* pages(list: (paging: ListOptions) => Promise<Page<JsonObject>>): AsyncGenerator<JsonObject[]> {
  let page = await list({ total: false });
  for (let offset = 0; page.items.length > 0; ) {
    yield page.items;
    offset += page.items.length;
    if (!page.hasMore) return;
    // A list by distance has no cursor.
    page = await list(page.cursor === null ? { offset, total: false } : { after: page.cursor });
  }
}

export async function aggregate(
  transport: Transport,
  query: QueryDescription,
  { signal, ...options }: Aggregate,
): Promise<JsonObject[]> {
  const parameters = { ...filterParameters(query), ...aggregateParameters(options) };
  const path = `${tablePath(query)}/aggregate`;
  return (await transport.request<{ groups: JsonObject[] }>("GET", path, { query: parameters, signal })).groups;
}

export function writeAll(
  transport: Transport,
  query: QueryDescription,
  action: { action: string; data?: JsonValue },
): Promise<WriteCounts> {
  const { sort, near, limit, fields, expand } = query;
  if (sort.length + expand.length > 0 || near !== undefined || limit !== null || fields !== null) {
    throw localError("invalid", "update and delete take only conditions");
  }
  const body = { ...action, filter: elementsOf(query) };
  return transport.request("POST", `${tablePath(query)}/batch-by-filter`, { body, idempotent: true });
}

/** Returns a page by its number. */
export async function page<Item>(
  query: { limit(count: number): typeof query; list(options: object): Promise<Page<Item>> },
  number: number,
  { perPage, ...options }: PageOptions = {},
): Promise<NumberedPage<Item>> {
  const asked = perPage == null ? query : query.limit(perPage);
  // A page that is asked for by its number is answered with it, and with null for these two.
  const { hasMore, cursor, ...page } = await asked.list({ ...options, page: number });
  return page as NumberedPage<Item>;
}
