import type { Auth, Player, RoomConfig } from "../config/types.ts";
import type { Millis } from "../kernel/clock.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { PendingPlaces } from "../sockets/pending-places.ts";
import type { RoomLimits } from "./limits.ts";

export interface RoomNamespace {
  name: string;
  config: RoomConfig;
  limits: RoomLimits;
  /** For connections that have not authenticated yet. */
  pending: PendingPlaces;
}

/** A room in the file. */
export interface SavedRoom {
  /** JSON, as `players` and `server`: of a large state it is parsed in steps. */
  shared: string;
  sharedVersion: number;
  /** `{ [userId]: { state, version } }` */
  players: string;
  server: string;
  metadata: JsonObject;
  timers: Record<string, StoredTimer>;
  /** The players in the room: after a restart they keep their places for the reconnect timeout. */
  present: readonly PresentPlayer[];
}

/** A room as it is to be saved. */
export interface RoomToSave extends SavedRoom {
  namespace: string;
  id: string;
  savedAt: Millis;
  expiresAt: Millis;
}

/** A player as last known, with the session by which one learns what is true of the user since. */
export interface PresentPlayer {
  player: Player;
  sessionId: string;
}

/** What rules see of a user at this moment; null when the session has ended. */
export type PresentAuth = (sessionId: string, auth: Auth) => Auth | null;

export interface StoredTimer {
  dueAt: Millis;
  data: JsonValue;
}

/** What a room needs of a connection. */
export interface RoomConnection {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  /** With the user's present role. */
  player(): Player;
  send(text: string): void;
  /** As `send`; a delta that waits behind a `sync` is worth nothing without it. */
  sendDelta(text: string): void;
  /** From here on what is sent waits, so that nothing overtakes the `sync`. */
  hold(): void;
  /** Sends the `sync` and what waited. */
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

/** One user in a room, with any number of connections; none while the place is kept for a reconnect. */
export interface Member extends PresentPlayer {
  readonly connections: Set<RoomConnection>;
  cancelGrace: (() => void) | null;
}
