import type { PlatformError } from "../transport/errors.ts";

/** A message of the server: its `type` and what belongs to it. */
export interface ServerMessage {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** `connecting`: for the first time. `waiting`: it was lost, or could not be made, and is tried again. */
export type SocketStatus = "closed" | "connecting" | "connected" | "waiting";

/**
 * The one connection of a client to `/api/realtime`. It is opened at the first `hold`, comes back by itself after a loss, and is
 * closed five seconds after the last hold ends. It begins anew when another user signs in, or the user signs out.
 */
export interface Socket {
  readonly status: SocketStatus;
  /** Why the server refuses this client; null where it does not, or has not been reached. */
  readonly error: PlatformError | null;
  /** Called when the status has changed. The function ends that. */
  subscribe(listener: (status: SocketStatus) => void): () => void;
  /** Keeps the connection open. The function ends that. */
  hold(): () => void;
  /** Sends a message if there is an authenticated connection; else does nothing, as `onConnected` says when to send again. */
  send(message: { readonly type: string; readonly [member: string]: unknown }): void;
  /** Calls the listener for each message of that type. The function ends that. */
  on(type: string, listener: (message: ServerMessage) => void): () => void;
  /** Calls the listener after each authentication, and at once if there is one now. The function ends that. */
  onConnected(listener: () => void): () => void;
}
