import type { JsonObject } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

/** Live room in a list. */
export interface RoomEntry {
  namespace: string;
  id: string;
  players: number;
  connections: number;
  /** Whether the room is in memory; false: it hibernates while its connections stay open. */
  isInMemory: boolean;
  /** Size of the shared and players' states in bytes; null while the room hibernates. */
  stateBytes: number | null;
}

/** Room as administrators see it. */
export interface RoomState {
  namespace: string;
  id: string;
  /**
   * Status of the room. `live`: in memory. `hibernating`: with players, but not in memory. `saved`: only in the file, as last
   * saved.
   */
  status: "live" | "hibernating" | "saved";
  /** Players, at most 1,000. A player without connections has a seat reserved for a reconnect. */
  players: { userId: string; role: string; connections: number; state: JsonObject | null }[];
  playerCount: number;
  metadata: JsonObject;
  sharedState: JsonObject | null;
  sharedVersion: number;
  serverState: JsonObject | null;
  stateBytes: number | null;
  timers: { name: string; dueAt: string }[];
  /** Whether the states exceed 256 KiB, so that parts of them are left out. */
  isTruncated: boolean;
}

/** Realtime channel that has subscribers. */
export interface ChannelEntry {
  name: string;
  kind: "table" | "presence" | "broadcast";
  subscribers: number;
  /** Number of messages since the first subscriber. */
  messages: number;
  /** Messages a second, averaged over the last ten seconds. */
  perSecond: number;
  /** Number of presence entries; null for other channels. */
  entries: number | null;
}

export interface AdminRealtime {
  /**
   * Returns the current connections, and the channels with the most subscribers or messages (`limit`: 100 by default, at most
   * 500).
   */
  overview(options?: { prefix?: string; sort?: "subscribers" | "rate"; limit?: number }): Promise<{
    connections: { total: number; users: number; serviceKeys: number };
    subscriptions: number;
    channels: ChannelEntry[];
    /** Number of channels, including those beyond `limit`. */
    total: number;
  }>;
}

export interface AdminRooms {
  /** Returns live rooms, the fullest first. `total` includes those beyond `limit` (100 by default, at most 500). */
  list(options?: { namespace?: string; prefix?: string; limit?: number }): Promise<{
    namespaces: { name: string; rooms: number; players: number }[];
    rooms: RoomEntry[];
    total: number;
  }>;
  /** Returns the state of a room. Errors: `not_found` for a room that is neither live nor saved. */
  get(namespace: string, id: string): Promise<RoomState>;
  /** Kicks a player. Errors: `not_found` for a user who is not a player. */
  kick(namespace: string, id: string, userId: string): Promise<void>;
  /** Kicks all players, and returns their number. Errors: `not_found` for a room that is not live. */
  close(namespace: string, id: string): Promise<number>;
}

const ROOMS = "/api/admin/rooms";
const roomPath = (namespace: string, id: string): string =>
  `${ROOMS}/${encodeURIComponent(namespace)}/${encodeURIComponent(id)}`;

export const createAdminRealtime = ({ request }: Transport): AdminRealtime => ({
  overview: (query) => request("GET", "/api/admin/realtime", { query: { ...query } }),
});

export const createAdminRooms = ({ request }: Transport): AdminRooms => ({
  list: (query) => request("GET", ROOMS, { query: { ...query } }),
  get: (namespace, id) => request<RoomState>("GET", roomPath(namespace, id)),
  async kick(namespace, id, userId) {
    await request("POST", `${roomPath(namespace, id)}/kick`, { body: { userId } });
  },
  close: async (namespace, id) =>
    (await request<{ kicked: number }>("POST", `${roomPath(namespace, id)}/close`)).kicked,
});
