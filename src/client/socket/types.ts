import type { PlatformError } from "../transport/errors.ts";

/** Message of the server: its `type` and further members. */
export interface ServerMessage {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Status of a connection. `connecting`: for the first time. `waiting`: it was lost, or could not be opened, and is retried. */
export type SocketStatus = "closed" | "connecting" | "connected" | "waiting";

/**
 * Shared connection of a client to `/api/realtime`. It opens at the first `hold`, reconnects automatically, and closes five
 * seconds after the last hold ends. It restarts when another user signs in, or the user signs out.
 */
export interface Socket {
  readonly status: SocketStatus;
  /** Reason why the server refuses this client; null if it does not, or has not been reached. */
  readonly error: PlatformError | null;
  /** Calls the listener after each change of the status. Returns a function that unsubscribes. */
  subscribe(listener: (status: SocketStatus) => void): () => void;
  /** Keeps the connection open. Returns a function that releases it. */
  hold(): () => void;
  /** Sends a message if the connection is authenticated; otherwise does nothing, as `onConnected` tells when to send again. */
  send(message: { readonly type: string; readonly [member: string]: unknown }): void;
  /** Calls the listener for each message of that type. Returns a function that unsubscribes. */
  on(type: string, listener: (message: ServerMessage) => void): () => void;
  /**
   * Calls the listener after each authentication, and at once if the connection is authenticated. Returns a function that
   * unsubscribes.
   */
  onConnected(listener: () => void): () => void;
}
