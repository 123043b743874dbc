import type { JsonValue } from "../kernel/json.ts";
import type { Delta } from "./delta.ts";

/** Spec: WebSocket error codes; NOT_JOINED and SESSION_REVOKED: decisions 9; INVALID_MESSAGE: no known `type`. */
export type RoomErrorCode =
  | "AUTH_FAILED"
  | "AUTH_REFRESH_FAILED"
  | "AUTH_TIMEOUT"
  | "INVALID_JSON"
  | "INVALID_MESSAGE"
  | "NOT_AUTHENTICATED"
  | "NOT_JOINED"
  | "RATE_LIMITED"
  | "INVALID_ACTION"
  | "NO_HANDLER"
  | "JOIN_DENIED"
  | "ROOM_FULL"
  | "SESSION_REVOKED";

export const PONG = JSON.stringify({ type: "pong" });
export const KICKED = JSON.stringify({ type: "kicked" });

export const authSuccess = (userId: string, connectionId: string): string =>
  JSON.stringify({ type: "auth_success", userId, connectionId });

export const authRefreshed = (userId: string, connectionId: string): string =>
  JSON.stringify({ type: "auth_refreshed", userId, connectionId });

/** `requestId` is carried where the message that is answered had one. */
export function errorMessage(code: RoomErrorCode, message: string, requestId?: JsonValue): string {
  return JSON.stringify({
    type: "error",
    code,
    message,
    ...(typeof requestId === "string" ? { requestId } : {}),
  });
}

/** One state of a `sync`; `stateText` is its JSON. */
export const syncPart = (name: "shared" | "player", stateText = "{}", version: number): string =>
  `"${name}State":${stateText},"${name}Version":${version}`;

export const syncMessage = (sharedPart: string, playerPart: string): string =>
  `{"type":"sync",${sharedPart},${playerPart}}`;

export const sharedDelta = (delta: Delta, version: number): string =>
  JSON.stringify({ type: "shared_delta", delta, version });

export const playerDelta = (delta: Delta, version: number): string =>
  JSON.stringify({ type: "player_delta", delta, version });

/** `resultText` is JSON. */
export const actionResult = (requestId: string, resultText: string): string =>
  `{"type":"action_result","requestId":${JSON.stringify(requestId)},"result":${resultText}}`;

export const actionError = (requestId: string, message: string): string =>
  JSON.stringify({ type: "action_error", requestId, message });

/** Errors: `data` that JSON cannot say. */
export function roomMessage(messageType: string, data: unknown): string {
  return `{"type":"message","messageType":${JSON.stringify(messageType)},"data":${jsonText(data)}}`;
}

/** JSON of any value; `undefined`, and what JSON leaves out, is null. Errors: cycles, bigint. */
export function jsonText(value: unknown): string {
  // JSON.stringify gives undefined for undefined, functions and symbols, whatever its type says.
  return (JSON.stringify(value) as string | undefined) ?? "null";
}

/** What clients and logs get to read of anything thrown. */
export function messageOf(cause: unknown): string {
  if (cause instanceof Error) return cause.message === "" ? cause.name : cause.message;
  return String(cause);
}
