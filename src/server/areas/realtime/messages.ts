import type { CommonErrorCode } from "../../sockets/protocol.ts";

/** What the server sends to one connection. Events are serialised in parts, where they are published. */
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

/** `id` and `feed`: of a subscription that the client has given an id. */
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
