import type { JsonObject } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

/** A live room in a list. */
export interface RoomEntry {
  namespace: string;
  id: string;
  players: number;
  connections: number;
  /** false: it has hibernated behind its connections. */
  isInMemory: boolean;
  /** Of the shared state and those of players; null while it hibernates. */
  stateBytes: number | null;
}

/** A room as administrators see it. */
export interface RoomState {
  namespace: string;
  id: string;
  /** `live`: in memory. `hibernating`: with players, and not in memory. `saved`: in the file only, as it was saved last. */
  status: "live" | "hibernating" | "saved";
  /** At most 1,000. Without connections the place is kept for a reconnect. */
  players: { userId: string; role: string; connections: number; state: JsonObject | null }[];
  playerCount: number;
  metadata: JsonObject;
  sharedState: JsonObject | null;
  sharedVersion: number;
  serverState: JsonObject | null;
  stateBytes: number | null;
  timers: { name: string; dueAt: string }[];
  /** The states have more than 256 KiB, and parts of them are left out. */
  isTruncated: boolean;
}

/** A channel of realtime that has subscribers. */
export interface ChannelEntry {
  name: string;
  kind: "table" | "presence" | "broadcast";
  subscribers: number;
  /** Since its first subscriber. */
  messages: number;
  /** Messages a second, over the last ten seconds. */
  perSecond: number;
  /** Of a presence channel; else null. */
  entries: number | null;
}

export interface AdminRealtime {
  /** What is connected now, and the channels with the most subscribers, or messages (`limit`: 100 by default, at most 500). */
  overview(options?: { prefix?: string; sort?: "subscribers" | "rate"; limit?: number }): Promise<{
    connections: { total: number; users: number; serviceKeys: number };
    subscriptions: number;
    channels: ChannelEntry[];
    /** Channels beyond `limit` included. */
    total: number;
  }>;
}

export interface AdminRooms {
  /** Live rooms, the fullest first. `total` counts those beyond `limit` (100 by default, at most 500). */
  list(options?: { namespace?: string; prefix?: string; limit?: number }): Promise<{
    namespaces: { name: string; rooms: number; players: number }[];
    rooms: RoomEntry[];
    total: number;
  }>;
  /** Errors: `not_found` for a room that is neither live nor saved. */
  get(namespace: string, id: string): Promise<RoomState>;
  /** Errors: `not_found` for somebody who is no player. */
  kick(namespace: string, id: string, userId: string): Promise<void>;
  /** Kicks everybody, and gives how many they were. Errors: `not_found` for a room that is not live. */
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
