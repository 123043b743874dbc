import { useMemo, useSyncExternalStore } from "react";
import type { RecordOf } from "../../server/config/typed/records.ts";
import type { LiveQuery, LiveStatus } from "../live/types.ts";
import type { QueryDescription } from "../tables/description.ts";
import type { PlatformError } from "../transport/errors.ts";
import type { Table } from "../types/table.ts";
import { keepEqual, useProvidedClient } from "./provider.ts";

/** A query of a table. Those with the same description are the same, so that it may be written inside a component. */
interface LiveSource<Item> {
  readonly description: QueryDescription;
  live(): LiveQuery<Item>;
}

export interface LiveResult<Item> {
  /** Another array after each change; records that have not changed stay the same objects. */
  items: readonly Item[];
  status: LiveStatus;
  /** Why the status is `denied` or `error`; null otherwise. */
  error: PlatformError | null;
  hasMore: boolean;
  /** Whether a write of this client to the record is under way. */
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

/** Begins the query when it is read first, which servers do not; it ends by itself when a render comes to nothing. */
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
 * The items of a query, which follow the server while the component is shown. null: nothing, for a query that is not known yet.
 * On a server it is `loading` without items, and nothing is opened.
 */
export function useLive<Item>(query: LiveSource<Item> | null): LiveResult<Item> {
  const key = query === null ? null : JSON.stringify(query.description);
  const client = useProvidedClient();
  // biome-ignore lint/correctness/useExhaustiveDependencies: queries of one client with the same description are the same
  const store = useMemo(() => createStore(query), [key, client]);
  return useSyncExternalStore(store.subscribe, store.read, () => NOTHING);
}

export interface RecordResult<Row> {
  /** null while it is loading, and when there is none that the user may read. */
  record: Row | null;
  status: LiveStatus;
  error: PlatformError | null;
}

/** One record by its id, which follows the server. null: none. */
export function useRecord<Tables, Name extends keyof Tables & string>(
  table: Table<Tables, Name>,
  id: string | null,
): RecordResult<RecordOf<Tables[Name]>> {
  // The types of `where` know the fields of a table, not those of any table; every table has ids.
  const any = table as unknown as {
    where(...condition: [string, string, string]): { limit(count: number): LiveSource<RecordOf<Tables[Name]>> };
  };
  const { items, status, error } = useLive(id === null ? null : any.where("id", "==", id).limit(1));
  return { record: items[0] ?? null, status, error };
}
