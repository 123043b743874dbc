import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { MaybePromise, OrNothing } from "../kernel/maybe-promise.ts";
import type { AppAccess } from "./app-access.ts";
import type { Auth } from "./types.ts";

export type LeaveReason = "leave" | "disconnect" | "kicked";

export interface Player {
  userId: string;
  connectionId: string;
  role: string;
  auth: Auth;
}

/** The whole state that follows, or a function from the present one to it. */
type Next = JsonObject | ((state: JsonObject) => JsonObject);

/** What room handlers work with. Decisions 9. */
export interface Room {
  readonly namespace: string;
  readonly id: string;
  readonly shared: JsonObject;
  setShared(next: Next): void;
  player(userId: string): JsonObject;
  setPlayer(userId: string, next: Next): void;
  /** Those in the room now. */
  players(): Player[];
  /** State that is saved and never sent. */
  readonly server: JsonObject;
  setServer(next: Next): void;
  send(messageType: string, data: JsonValue, options?: { except?: readonly string[] }): void;
  sendTo(userId: string, messageType: string, data: JsonValue): void;
  kick(userId: string): void;
  readonly metadata: JsonObject;
  setMetadata(metadata: JsonObject): void;
  /** One timer a name: setting it again replaces it. */
  setTimer(name: string, ms: number, data?: JsonValue): void;
  clearTimer(name: string): void;
  save(): void;
  readonly app: AppAccess;
}

export interface RoomConfig {
  maxPlayers?: number;
  /** Bytes of JSON, shared and all player states together; 1 MiB by default, 10 MiB at most. */
  maxStateSize?: number;
  /** Messages per second and connection; 10 by default. */
  messageRate?: number;
  /** Milliseconds; 5000 by default. */
  authTimeout?: number;
  /** Connections of one address that have not authenticated yet; 5 by default. Further ones wait up to 2 s for a place. */
  pendingPerAddress?: number;
  /** Milliseconds; 30000 by default. */
  reconnectTimeout?: number;
  /** Milliseconds; 60000 by default. */
  saveInterval?: number;
  /** Milliseconds for which the state of an empty room is kept; 24 h by default. */
  stateTtl?: number;
  /** Milliseconds; 300000 by default. */
  idleTimeout?: number;
  access?: {
    join?: boolean | ((auth: Auth, roomId: string) => MaybePromise<boolean>);
    action?: (auth: Auth, roomId: string, actionType: string, payload: JsonValue) => MaybePromise<boolean>;
  };
  onCreate?: (room: Room) => MaybePromise<void>;
  onJoin?: (room: Room, player: Player) => MaybePromise<void>;
  onLeave?: (room: Room, player: Player, reason: LeaveReason) => MaybePromise<void>;
  onDestroy?: (room: Room) => MaybePromise<void>;
  actions?: {
    [actionType: string]: (room: Room, player: Player, payload: JsonValue) => MaybePromise<OrNothing<JsonValue>>;
  };
  timers?: { [name: string]: (room: Room, data: JsonValue) => MaybePromise<void> };
}

export interface RoomsConfig {
  [namespace: string]: RoomConfig;
}
