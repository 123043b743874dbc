import type { InTurn } from "./auth/lease.ts";
import type { Session } from "./auth/session.ts";
import type { OfflineOptions } from "./offline/types.ts";
import type { Runtime } from "./runtime.ts";
import type { Socket } from "./socket/types.ts";
import type { Store } from "./store.ts";
import type { LocalWrites, TableWrite } from "./tables/writes.ts";
import type { Transport } from "./transport/types.ts";

export interface ClientOptions {
  /** Address of the server, such as `https://api.example.com`. It may have a path. */
  url: string;
  /** Store of the session; by default `localStorage` in browsers, memory elsewhere. */
  store?: Store;
  /** WebSocket class for environments without one, such as that of the package `ws`. */
  webSocket?: new (
    url: string,
    protocols?: string[],
  ) => WebSocket;
  /** Keeps the records of live queries, and unsent writes, in this browser. */
  offline?: OfflineOptions;
}

/**
 * Parts that all features of the client share. Optional features are functions of the context, in modules loaded by `import()` on
 * first use.
 */
export interface ClientContext {
  readonly options: ClientOptions;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly inTurn: InTurn;
  readonly transport: Transport;
  readonly session: Session;
  /** Observer of local writes. Live queries install theirs when they are loaded. */
  writes: LocalWrites;
  /** Sends a write, and returns its response. Offline support installs its queue here. */
  deliver(write: TableWrite): Promise<unknown>;
  /** Returns the connection that all realtime features share. It opens when held. */
  socket(): Promise<Socket>;
  /** Runs `work` at `client.close()`; immediately if already closed. Returns a function that cancels this. */
  onClose(work: () => void): () => void;
  close(): void;
}
