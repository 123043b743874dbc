import type { JsonObject } from "../../kernel/json/json.ts";
import type { PlatformError } from "../transport/errors.ts";

/** Status of a channel. `denied`: a rule refuses the channel; `offline`: the connection is lost and reconnects automatically. */
export type ChannelStatus = "loading" | "live" | "offline" | "denied";

interface Channel {
  /** Status; `loading` before the first listener. */
  readonly status: ChannelStatus;
  /** Reason for `denied`; null otherwise. */
  readonly error: PlatformError | null;
}

/** Connection tracked on a channel: a user with two tabs has two. */
export interface PresentUser<State = JsonObject> {
  userId: string;
  connectionId: string;
  state: State;
}

/** Presence on a channel. Needs a signed-in user. */
export interface Presence<State = JsonObject> extends Channel {
  /** Tracked connections, while there is a listener. Each change creates a new array; while offline it keeps the last one. */
  readonly users: readonly PresentUser<State>[];
  /**
   * Follows the channel, and calls the listener when `users`, `status` or `error` changes. Returns a function that unsubscribes.
   */
  subscribe(listener: () => void): () => void;
  /** Shows this client with a state of at most 1 KB, also after each reconnect, until `untrack`. Errors: `PlatformError`. */
  track(state: State): Promise<void>;
  untrack(): Promise<void>;
}

/** Messages to all listeners of a channel, which are not stored. Needs a signed-in user. */
export interface Broadcast extends Channel {
  /**
   * Sends a message, and resolves when the server has sent it. Without a connection it waits for one, at most 15 s. Errors:
   * `PlatformError`.
   */
  send(event: string, payload?: JsonObject, options?: { toSelf?: boolean }): Promise<void>;
  /** Calls the listener with the payload of each such event from others. Returns a function that unsubscribes. */
  on<Payload = JsonObject>(event: string, listener: (payload: Payload) => void): () => void;
  /** Calls the listener when `status` or `error` changes. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}
