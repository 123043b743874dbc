import type { Transport } from "../transport/types.ts";
import type { AdminRealtime, AdminRooms, RoomState } from "./live-types.ts";

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
