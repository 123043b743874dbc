import type { Millis } from "../../../kernel/clock.ts";
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import type { Auth, Player, RoomConfig } from "../../config/types.ts";
import type { AuditedChange } from "../../db/index.ts";
import type { PendingPlaces } from "../../sockets/pending-places.ts";
import type { RoomLimits } from "./limits.ts";

export interface RoomNamespace {
  name: string;
  config: RoomConfig;
  limits: RoomLimits;
  /** Places of unauthenticated connections. */
  pending: PendingPlaces;
}

export interface RoomAddress {
  namespace: RoomNamespace;
  id: string;
}

/** A room in the file. */
export interface SavedRoom {
  /** Shared state as JSON. `players` and `server` are JSON as well. */
  shared: string;
  sharedVersion: number;
  /** Player states as JSON: `{ [userId]: { state, version } }`. */
  players: string;
  server: string;
  metadata: JsonObject;
  timers: Record<string, StoredTimer>;
  /** Players in the room. After a restart they keep their places for the reconnect timeout. */
  present: readonly PresentPlayer[];
}

/** A player as last known, and the session that identifies the user. */
export interface PresentPlayer {
  player: Player;
  sessionId: string;
}

/** Returns the current user, as passed to rules; null when the session has ended. */
export type PresentAuth = (sessionId: string, auth: Auth) => Auth | null;

export interface StoredTimer {
  dueAt: Millis;
  data: JsonValue;
}

/** A connection from the view of a room. */
export interface RoomConnection {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly wantsPlayers: boolean;
  /** Returns the player with the user's current role. */
  player(): Player;
  send(text: string): void;
  /** Sends a delta, which is dropped together with the `sync` that it follows. */
  sendDelta(text: string): void;
  /** Holds texts sent from then on, until the `sync`. */
  hold(): void;
  /** Sends the `sync` and the held texts. */
  release(syncText: string): void;
  /** Sends `text` and closes the connection. */
  end(code: number, reason: string, text: string): void;
  /** Close code; null while the connection is open. */
  readonly closeCode: number | null;
}

export type JoinOutcome =
  | { kind: "joined" }
  | { kind: "denied"; message: string }
  | { kind: "full"; maxPlayers: number };

/** A user in a room, with any number of connections: none while the place is kept for a reconnect. */
export interface Member extends PresentPlayer {
  readonly connections: Set<RoomConnection>;
  cancelGrace: (() => void) | null;
}

/** Records an administrator's action in the audit log. Resolves when it is on disk. */
export type RecordChange = (change: AuditedChange) => Promise<void>;
