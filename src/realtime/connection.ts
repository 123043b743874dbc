import type { Connection } from "../sockets/connection.ts";
import type { Failure as SocketFailure } from "../sockets/protocol.ts";
import type { ErrorCode } from "./changes/encoding.ts";
import type { Tracked } from "./presence/presence.ts";
import type { Subscription } from "./subscriptions/table-subscriptions.ts";

/** What realtime keeps for a connection. */
export interface RealtimeState {
  /** The connection's own channel: what track, untrack and broadcast act on. */
  readonly defaultChannel: string | null;
  readonly subscriptions: Map<string, Subscription>;
  /** null: it has never been tracked. */
  tracked: Tracked | null;
}

export type RealtimeConnection = Connection<RealtimeState>;

/** Why a message was not done. */
export type Failure = SocketFailure<ErrorCode>;
export const failure = (code: ErrorCode, message: string): Failure => ({ code, message });
export const unknownChannel = (name: string): Failure => failure("INVALID_CHANNEL", `There is no channel "${name}"`);
export const denied = (code: "SUBSCRIBE_DENIED" | "ACCESS_DENIED"): Failure => failure(code, "Access denied");
