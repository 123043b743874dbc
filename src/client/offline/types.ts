import type { TableWrite } from "../tables/writes.ts";
import type { PlatformError } from "../transport/errors.ts";

/**
 * Called with a queued write that was refused and undone. Code `unknown`: its response was lost, it is too old to be retried, and
 * the server may have executed it. Code `unauthenticated`: its user has signed out, or the session has ended.
 */
export type RefusedListener = (write: TableWrite, error: PlatformError) => void;

export interface Offline {
  /**
   * Subscribes to refused writes. Returns a function that unsubscribes. Writes refused before the first listener are reported to
   * it.
   */
  onRefused(listener: RefusedListener): () => void;
}

export interface OfflineOptions {
  /** Name of the database in this browser. Clients with the same name share cached records and waiting writes. */
  name: string;
}
