import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import type { AppAccess } from "../app/index.ts";
import type { Auth } from "../identity.ts";

export type LeaveReason = "leave" | "disconnect" | "kicked";

export interface Player {
  userId: string;
  connectionId: string;
  role: string;
  auth: Auth;
}

/** The whole next state, or a function that computes it from the current one. */
type Next = JsonObject | ((state: JsonObject) => JsonObject);

/** A room, as its handlers see and change it. */
export interface Room {
  readonly namespace: string;
  readonly id: string;
  readonly shared: JsonObject;
  setShared(next: Next): void;
  player(userId: string): JsonObject;
  setPlayer(userId: string, next: Next): void;
  /** The players in the room now. */
  players(): Player[];
  /** State that is saved and never sent to clients. */
  readonly server: JsonObject;
  setServer(next: Next): void;
  send(messageType: string, data: JsonValue, options?: { except?: readonly string[] }): void;
  sendTo(userId: string, messageType: string, data: JsonValue): void;
  kick(userId: string): void;
  readonly metadata: JsonObject;
  setMetadata(metadata: JsonObject): void;
  /** Sets a timer. Each name has one: setting it again replaces it. */
  setTimer(name: string, ms: number, data?: JsonValue): void;
  clearTimer(name: string): void;
  save(): void;
  readonly app: AppAccess;
}
