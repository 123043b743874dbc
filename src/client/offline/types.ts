import type { TableWrite } from "../tables/writes.ts";
import type { PlatformError } from "../transport/errors.ts";

/**
 * Called with a write that waited and was refused, and is undone. The code `unknown`: its answer was lost, it is too old to be
 * sent again, and the server may have done it. The code `unauthenticated`: its user has signed out, or the session has ended.
 */
export type RefusedListener = (write: TableWrite, error: PlatformError) => void;

export interface Offline {
  /** The function ends it. Writes that were refused before the first listener are reported to it. */
  onRefused(listener: RefusedListener): () => void;
}

export interface OfflineOptions {
  /** Of the database in this browser: clients with the same name share what they have seen, and the writes that wait. */
  name: string;
}
