import type { PlatformError } from "../transport/errors.ts";

/**
 * `loading`: nothing has been read yet. `live`: the items are those of the server, and follow it. `offline`: the server cannot
 * be reached, and the items are the last known ones. `denied`: the user may not read them, and there are none. `error`: see
 * `error`.
 */
export type LiveStatus = "loading" | "live" | "offline" | "denied" | "error";

/** A query whose items follow the server. It works from the start, and ends five seconds after its last listener. */
export interface LiveQuery<Item> {
  /** As `list` answers them, with this client's own writes. Never changed: each change gives another array, of which records
   * that have not changed are the same objects. */
  readonly items: readonly Item[];
  readonly status: LiveStatus;
  /** null unless the status is `error` or `denied`. */
  readonly error: PlatformError | null;
  /** Whether there are records after the items. */
  readonly hasMore: boolean;
  /** Whether a write of this client to the record is still under way. Another function each time that this changes. */
  readonly isPending: (id: string) => boolean;
  /** Calls the listener after changes, at most once in a frame. The function ends that. A query that has ended begins again. */
  subscribe(listener: () => void): () => void;
  /** Ends it at once, unless an equal query goes on. The items stay as they are. */
  close(): void;
}
