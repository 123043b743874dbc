import { useMemo, useSyncExternalStore } from "react";
import type { RecordOf } from "../../server/config/typed/records.ts";
import type { LiveQuery, LiveStatus } from "../live/types.ts";
import type { QueryDescription } from "../tables/description.ts";
import type { PlatformError } from "../transport/errors.ts";
import type { SearchOptions } from "../types/query.ts";
import type { Table } from "../types/table.ts";
import { keepEqual, useProvidedClient } from "./provider.ts";

/** Query of a table. Equal descriptions are the same query, so it may be created inside a component. */
interface LiveSource<Item> {
  readonly description: QueryDescription;
  live(): LiveQuery<Item>;
}

export interface LiveResult<Item> {
  /** Items; each change creates a new array, in which unchanged records are the same objects. */
  items: readonly Item[];
  status: LiveStatus;
  /** Reason for the status `denied` or `error`; null otherwise. */
  error: PlatformError | null;
  hasMore: boolean;
  /** Returns whether a write of this client to the record is in flight. */
  isPending: LiveQuery<Item>["isPending"];
}

const NOTHING: LiveResult<never> = {
  items: [],
  status: "loading",
  error: null,
  hasMore: false,
  isPending: () => false,
};

interface Store<Snapshot> {
  subscribe(listener: () => void): () => void;
  read(): Snapshot;
}

/** Creates a store that starts the query on the first read, which servers skip. It ends by itself if the render is discarded. */
function createStore<Item>(query: LiveSource<Item> | null): Store<LiveResult<Item>> {
  if (query === null) return { subscribe: () => () => {}, read: () => NOTHING };
  let begun: LiveQuery<Item> | null = null;
  const keep = keepEqual<LiveResult<Item>>();
  const live = () => {
    begun ??= query.live();
    return begun;
  };
  return {
    subscribe: (listener) => live().subscribe(listener),
    read() {
      const { items, status, error, hasMore, isPending } = live();
      return keep({ items, status, error, hasMore, isPending });
    },
  };
}

/**
 * Returns the items of a query, which follow the server while the component is mounted. null: no query yet. On a server the
 * status is `loading` without items, and no connection opens.
 */
export function useLive<Item>(query: LiveSource<Item> | null): LiveResult<Item> {
  const key = query === null ? null : JSON.stringify(query.description);
  const client = useProvidedClient();
  // biome-ignore lint/correctness/useExhaustiveDependencies: queries of one client with the same description are the same
  const store = useMemo(() => createStore(query), [key, client]);
  return useSyncExternalStore(store.subscribe, store.read, () => NOTHING);
}

interface SearchSource<Item> {
  search(text: string, options?: SearchOptions): LiveSource<Item>;
}

/**
 * Returns the results of a search, each with `highlights`, which follow the server while the component is mounted. `query`: the table,
 * or a query of it. Without a text there are none.
 */
export function useSearch<Item>(
  query: SearchSource<Item> | null,
  text: string | null,
  options?: Omit<SearchOptions, "signal">,
): LiveResult<Item> {
  return useLive(query === null || text === null || text.trim() === "" ? null : query.search(text, options));
}

export interface RecordResult<Row> {
  /** Record; null while it is loading, and if there is none that the user may read. */
  record: Row | null;
  status: LiveStatus;
  error: PlatformError | null;
}

/** Returns one record by its id, which follows the server. null: no id yet. */
export function useRecord<Tables, Name extends keyof Tables & string>(
  table: Table<Tables, Name>,
  id: string | null,
): RecordResult<RecordOf<Tables[Name]>> {
  // `where` is typed by the fields of one table; every table has ids.
  const any = table as unknown as {
    where(...condition: [string, string, string]): { limit(count: number): LiveSource<RecordOf<Tables[Name]>> };
  };
  const { items, status, error } = useLive(id === null ? null : any.where("id", "==", id).limit(1));
  return { record: items[0] ?? null, status, error };
}
