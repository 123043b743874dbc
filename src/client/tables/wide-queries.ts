import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { localError } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";
import type { Cancellable, Found, Page, SearchPage, WriteCounts } from "../types/query.ts";
import { elementsOf, filterParameters, listParameters, type QueryDescription, tablePath } from "./description.ts";

/** Options of an aggregate over untyped field names. */
export interface Aggregate extends Cancellable {
  select: readonly string[];
  groupBy?: readonly string[];
  sort?: readonly (string | readonly [string, "asc" | "desc"])[];
  limit?: number;
  timezone?: string;
}

export async function search(
  transport: Transport,
  query: QueryDescription,
  signal: AbortSignal | undefined,
): Promise<SearchPage<Found<JsonObject>>> {
  const parameters = { ...listParameters(query), ...query.search };
  const path = `${tablePath(query)}/search`;
  const found = await transport.request<Page<Found<JsonObject>>>("GET", path, { query: parameters, signal });
  const { items, total } = found;
  return { items, total, hasMore: (query.search?.offset ?? 0) + items.length < (total ?? 0) };
}

export async function aggregate(
  transport: Transport,
  query: QueryDescription,
  { select, groupBy = [], sort = [], limit, timezone, signal }: Aggregate,
): Promise<JsonObject[]> {
  const parameters = {
    ...filterParameters(query),
    select: select.join(),
    groupBy: groupBy.join() || null,
    sort: sort.map((key) => (typeof key === "string" ? key : key.join(":"))).join() || null,
    limit,
    timezone,
  };
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
    throw localError("invalid", "sort, near, limit, fields and expand take no update or delete");
  }
  const body = { ...action, filter: elementsOf(query) };
  return transport.request("POST", `${tablePath(query)}/batch-by-filter`, { body, idempotent: true });
}
