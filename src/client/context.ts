import type { Session } from "./auth/session.ts";
import type { OfflineOptions } from "./offline/types.ts";
import type { Runtime } from "./runtime.ts";
import type { Socket } from "./socket/types.ts";
import type { Store } from "./store.ts";
import type { LocalWrites, TableWrite } from "./tables/writes.ts";
import type { Transport } from "./transport/types.ts";

export interface ClientOptions {
  /** The address of the server, such as `https://api.example.com`. A path in it counts. */
  url: string;
  /** Where the session is kept; `localStorage` in browsers, memory elsewhere by default. */
  store?: Store;
  /** The class for WebSockets where the environment has none, such as that of the package `ws`. */
  webSocket?: new (
    url: string,
    protocols?: string[],
  ) => WebSocket;
  /** Keeps what live queries have seen, and writes that could not be sent yet, in this browser. */
  offline?: OfflineOptions;
}

/**
 * What the parts of the client share. A feature that a page may not need is a function of the context in a module that is
 * loaded by `import()` when it is used first.
 */
export interface ClientContext {
  readonly options: ClientOptions;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly transport: Transport;
  readonly session: Session;
  /** Hears of local writes. Live queries put theirs here when they are loaded. */
  writes: LocalWrites;
  /** Sends a write, and gives its answer. Offline puts its queue here. */
  deliver(write: TableWrite): Promise<unknown>;
  /** The connection that everything live shares. It is opened when it is held. */
  socket(): Promise<Socket>;
  /** Runs `work` at `client.close()`; at once after it. The function ends that. */
  onClose(work: () => void): () => void;
  close(): void;
}
