import type { PlatformError } from "../transport/errors.ts";

/**
 * Status of a live query. `loading`: nothing has been read yet. `live`: the items match the server, and follow it. `offline`: the
 * server is unreachable, and the items are the last known ones. `denied`: the user may not read the records, and there are no
 * items. `error`: see `error`.
 */
export type LiveStatus = "loading" | "live" | "offline" | "denied" | "error";

/** Query whose items follow the server. It runs from its creation, and ends five seconds after its last listener. */
export interface LiveQuery<Item> {
  /**
   * Items as `list` returns them, with this client's own writes. Immutable: each change creates a new array, in which unchanged
   * records are the same objects.
   */
  readonly items: readonly Item[];
  readonly status: LiveStatus;
  /** Failure; null unless the status is `error` or `denied`. */
  readonly error: PlatformError | null;
  /** Whether there are records after the items. */
  readonly hasMore: boolean;
  /**
   * Returns whether a write of this client to the record is in flight. Replaced by a new function each time the result changes.
   */
  readonly isPending: (id: string) => boolean;
  /**
   * Calls the listener after changes, at most once per frame. Returns a function that unsubscribes. Restarts a query that has
   * ended.
   */
  subscribe(listener: () => void): () => void;
  /** Ends the query at once, unless an equal one goes on. The items stay as they are. */
  close(): void;
}
