import type { CommonErrorCode } from "../sockets/protocol.ts";

/** What the server sends to one connection. Events are serialised in parts, where they are published. */
export type ServerMessage =
  | { type: "auth_success"; userId: string }
  | { type: "auth_refreshed"; userId: string; revokedChannels: string[] }
  | { type: "subscribed"; channel: string; serverFilter: boolean; seq?: number; resync?: true }
  | { type: "filters_updated"; channel: string; serverFilter: boolean }
  | { type: "presence_leave"; channel: string; userId: string; connectionId: string; reason: LeaveReason }
  | { type: "pong" };

export type LeaveReason = "disconnect" | "timeout";

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
