import type { JsonValue } from "../../../kernel/json/json.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { CommonErrorCode } from "../../sockets/protocol.ts";
import type { Delta } from "./state/delta.ts";

/** Error codes of rooms, beside those of all WebSockets. */
export type RoomErrorCode =
  | "NOT_JOINED"
  | "INVALID_MESSAGE"
  | "INVALID_ACTION"
  | "NO_HANDLER"
  | "JOIN_DENIED"
  | "ROOM_FULL";

interface ListedPlayer {
  userId: string;
  connectionId: string;
  role: string;
}

export const PONG = JSON.stringify({ type: "pong" });
export const KICKED = JSON.stringify({ type: "kicked" });

export const authSuccess = (userId: string, connectionId: string): string =>
  JSON.stringify({ type: "auth_success", userId, connectionId, version: VERSION });

export const authRefreshed = (userId: string, connectionId: string): string =>
  JSON.stringify({ type: "auth_refreshed", userId, connectionId });

/** Returns the text of an `error`. `requestId` is left out unless it is a string. */
export function errorMessage(code: RoomErrorCode | CommonErrorCode, message: string, requestId?: JsonValue): string {
  return JSON.stringify({
    type: "error",
    code,
    message,
    requestId: typeof requestId === "string" ? requestId : undefined,
  });
}

/** Returns one state of a `sync`; `stateText` is its JSON. */
export const syncPart = (name: "shared" | "player", stateText = "{}", version: number): string =>
  `"${name}State":${stateText},"${name}Version":${version}`;

export const syncMessage = (sharedPart: string, playerPart: string): string =>
  `{"type":"sync",${sharedPart},${playerPart}}`;

export const sharedDelta = (delta: Delta, version: number): string =>
  JSON.stringify({ type: "shared_delta", delta, version });

export const playerDelta = (delta: Delta, version: number): string =>
  JSON.stringify({ type: "player_delta", delta, version });

/** Returns the list of players. `total`: their number in a room with more players than the list names. */
export const playersMessage = (players: readonly ListedPlayer[], total: number): string =>
  JSON.stringify({ type: "players", players, total: total > players.length ? total : undefined });

/** Returns the result of an action. `resultText` is JSON. */
export const actionResult = (requestId: string, resultText: string): string =>
  `{"type":"action_result","requestId":${JSON.stringify(requestId)},"result":${resultText}}`;

export const actionError = (requestId: string, message: string): string =>
  JSON.stringify({ type: "action_error", requestId, message });

/** Returns a message of a handler to clients. Errors: `data` that cannot be serialised. */
export function roomMessage(messageType: string, data: unknown): string {
  return `{"type":"message","messageType":${JSON.stringify(messageType)},"data":${jsonText(data)}}`;
}

/** Returns the JSON of any value; null for `undefined` and for what JSON leaves out. Errors: cycles, bigint. */
export function jsonText(value: unknown): string {
  // JSON.stringify returns undefined for undefined, functions and symbols; its type does not say so.
  return (JSON.stringify(value) as string | undefined) ?? "null";
}

/** Close code of a player kicked by a handler or an administrator. */
export const CLOSE_KICKED = 4001;

/** Whether a client closed the connection on purpose: 1000, 1001, or 1005, which stands for a close without a code. */
export const isCleanClose = (code: number): boolean => code === 1000 || code === 1001 || code === 1005;
