import type { CommonErrorCode } from "../../sockets/protocol.ts";
import { EVENTS_DATA_MAX_BYTES } from "../limits.ts";
import type { Entry } from "./change-log.ts";
import type { ChangeType } from "./visibility.ts";

/** Everything the server sends, apart from what is serialised in parts. Spec: Realtime, server to client. */
export type ServerMessage =
  | { type: "auth_success"; userId: string }
  | { type: "auth_refreshed"; userId: string; revokedChannels: string[] }
  | { type: "subscribed"; channel: string; serverFilter: boolean; seq?: number; resync?: true }
  | { type: "filters_updated"; channel: string; serverFilter: boolean }
  | { type: "presence_leave"; channel: string; userId: string; connectionId: string; reason: LeaveReason }
  | { type: "pong" };

export type LeaveReason = "disconnect" | "timeout";

/** Beside those that all areas have. */
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

/**
 * The messages for one request's changes of a channel: one for each, or a single one from `batchThreshold` on. Records
 * are already JSON; those that are too large, or beyond EVENTS_DATA_MAX_BYTES, are left out, and the event says so. [RT18, RT100]
 */
export function encodeChanges(
  channel: { name: string; table: string },
  entries: readonly Entry[],
  types: readonly (ChangeType | null)[],
  batchThreshold: number,
): string[] {
  const head = `{"type":"db_change","channel":${JSON.stringify(channel.name)},"table":${JSON.stringify(channel.table)}`;
  const messages: string[] = [];
  let dataLeft = EVENTS_DATA_MAX_BYTES;
  for (const [index, entry] of entries.entries()) {
    const type = types[index] ?? null;
    if (type === null) continue;
    const text = type === "removed" ? "null" : entry.text;
    const bytes = text === null ? Number.POSITIVE_INFINITY : Buffer.byteLength(text);
    const isTruncated = bytes > dataLeft;
    if (!isTruncated) dataLeft -= bytes;
    const data = isTruncated ? `null,"truncated":true` : text;
    messages.push(
      `${head},"changeType":"${type}","docId":${JSON.stringify(entry.change.id)},"data":${data},"timestamp":"${entry.timestamp}","seq":${entry.seq}}`,
    );
  }
  if (messages.length < batchThreshold) return messages;
  const all = messages.join(",");
  return [
    `{"type":"batch_changes","channel":${JSON.stringify(channel.name)},"changes":[${all}],"total":${messages.length}}`,
  ];
}
