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
  /** Places of connections that have not authenticated yet. */
  pending: PendingPlaces;
}

export interface RoomAddress {
  namespace: RoomNamespace;
  id: string;
}

/** A room in the file. */
export interface SavedRoom {
  /** JSON, as `players` and `server`. */
  shared: string;
  sharedVersion: number;
  /** `{ [userId]: { state, version } }` */
  players: string;
  server: string;
  metadata: JsonObject;
  timers: Record<string, StoredTimer>;
  /** The players in the room. After a restart they keep their places for the reconnect timeout. */
  present: readonly PresentPlayer[];
}

/** A player as last known, with the session by which the user is looked up. */
export interface PresentPlayer {
  player: Player;
  sessionId: string;
}

/** Returns the present user, as rules get it; null when the session has ended. */
export type PresentAuth = (sessionId: string, auth: Auth) => Auth | null;

export interface StoredTimer {
  dueAt: Millis;
  data: JsonValue;
}

/** A connection as a room uses it. */
export interface RoomConnection {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly wantsPlayers: boolean;
  /** Returns the player with the present role of the user. */
  player(): Player;
  send(text: string): void;
  /** Sends a delta, which is dropped with the `sync` that it follows. */
  sendDelta(text: string): void;
  /** Holds texts that are sent from now on, until the `sync`. */
  hold(): void;
  /** Sends the `sync` and the texts that waited. */
  release(syncText: string): void;
  /** Sends `text` and closes. */
  end(code: number, reason: string, text: string): void;
  /** null while it is open. */
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

/** Writes down for the audit log what an administrator has done. Resolves when it is on disk. */
export type RecordChange = (change: AuditedChange) => Promise<void>;
