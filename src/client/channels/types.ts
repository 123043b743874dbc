import type { JsonObject } from "../../kernel/json/json.ts";
import type { PlatformError } from "../transport/errors.ts";

/** `denied`: a rule refuses the channel; `offline`: the connection is lost and comes back by itself. */
export type ChannelStatus = "loading" | "live" | "offline" | "denied";

interface Channel {
  /** `loading` before anybody listens. */
  readonly status: ChannelStatus;
  /** Why it is `denied`; null otherwise. */
  readonly error: PlatformError | null;
}

/** One connection that is tracked on a channel: a user with two tabs has two. */
export interface PresentUser<State = JsonObject> {
  userId: string;
  connectionId: string;
  state: State;
}

/** Who is on a channel. It needs a signed-in user. */
export interface Presence<State = JsonObject> extends Channel {
  /** Those that are tracked, while somebody listens. Another array after each change; while offline, the last ones. */
  readonly users: readonly PresentUser<State>[];
  /** Follows the channel, and calls the listener when `users`, `status` or `error` changes. The function ends that. */
  subscribe(listener: () => void): () => void;
  /** Makes this client visible with a state of at most 1 KB, also after each reconnect, until `untrack`. Errors: `PlatformError`. */
  track(state: State): Promise<void>;
  untrack(): Promise<void>;
}

/** Messages that are sent to all who listen, and not stored. It needs a signed-in user. */
export interface Broadcast extends Channel {
  /** Resolves when the server has sent it. Without a connection it waits for one, 15 s at most. Errors: `PlatformError`. */
  send(event: string, payload?: JsonObject, options?: { toSelf?: boolean }): Promise<void>;
  /** Calls the listener with the payload of each such event of others. The function ends that. */
  on<Payload = JsonObject>(event: string, listener: (payload: Payload) => void): () => void;
  /** Calls the listener when `status` or `error` changes. The function ends that. */
  subscribe(listener: () => void): () => void;
}
