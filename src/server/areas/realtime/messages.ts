import type { CommonErrorCode, Failure as SocketFailure } from "../../sockets/protocol.ts";
import type { TableChannel } from "./channel.ts";

/** A message of the server to one connection. Events are serialised in parts, where they are published. */
export type ServerMessage =
  // `userId` is null where the connection has no user.
  | { type: "auth_success"; userId: string | null; version: string }
  | { type: "auth_refreshed"; userId: string | null; revokedChannels: string[]; revokedIds?: string[] }
  | ({ type: "subscribed"; serverFilter: boolean; seq?: number; resync?: true } & Subscribed)
  | ({ type: "filters_updated"; serverFilter: boolean } & Subscribed)
  | { type: "done"; requestId: string }
  | { type: "unsubscribed"; id: string; channel?: string }
  | { type: "presence_leave"; channel: string; userId: string; connectionId: string; reason: LeaveReason }
  | { type: "pong" };

/** Name of a subscription; `id` and `feed` are present when the client has given it an id. */
interface Subscribed {
  channel: string;
  id?: string;
  feed?: string;
}

export type LeaveReason = "disconnect" | "timeout" | "denied";

export type ErrorCode =
  | CommonErrorCode
  | "SUBSCRIBE_DENIED"
  | "ACCESS_DENIED"
  | "INVALID_CHANNEL"
  | "INVALID_FILTER"
  | "NOT_SUBSCRIBED"
  | "STATE_TOO_LARGE"
  | "TOO_MANY_SUBSCRIPTIONS"
  | "TOO_MANY_TRACKED"
  | "CHANNEL_FULL";

/** Code and message of a refusal. */
export type Failure = SocketFailure<ErrorCode>;

export const failure = (code: ErrorCode, message: string): Failure => ({ code, message });

const CHANNELS =
  "realtime:NAMESPACE:TABLE, realtime:NAMESPACE:INSTANCE:TABLE where it has instances, presence:NAME or broadcast:NAME";

export const unknownChannel = (name: string): Failure =>
  failure("INVALID_CHANNEL", `There is no channel "${name}": expected ${CHANNELS}`);

/** Refuses a channel of a view of which nobody knows when its records change. */
export const notLive = ({ address: { namespace, table } }: TableChannel): Failure =>
  failure(
    "INVALID_CHANNEL",
    `${table} is a view that does not say which tables it is made of: databases.${namespace}.views.${table}.live names them`,
  );

/** Refuses a channel of the wrong kind for the message, or a name that is no channel. */
export const otherChannel = (name: string, expected: "presence" | "broadcast"): Failure =>
  failure("INVALID_CHANNEL", `"${name}" is no channel for this: expected ${expected}:NAME`);

export const denied = (code: "SUBSCRIBE_DENIED" | "ACCESS_DENIED"): Failure => failure(code, "Access denied");

/** Rights that a connection has lost, as named in `auth_refreshed`. */
export class Revoked {
  readonly #channels = new Set<string>();
  readonly #ids: string[] = [];

  add({ name, id }: { readonly name: string; readonly id: string | null }): this {
    this.#channels.add(name);
    if (id !== null) this.#ids.push(id);
    return this;
  }

  get isEmpty(): boolean {
    return this.#channels.size === 0;
  }

  message(userId: string | null): ServerMessage {
    const message = { type: "auth_refreshed" as const, userId, revokedChannels: [...this.#channels] };
    return this.#ids.length === 0 ? message : { ...message, revokedIds: this.#ids };
  }
}
