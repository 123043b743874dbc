import type { Transport } from "../transport/types.ts";
import type { AdminPush, PushDevice, PushLog } from "./types.ts";

type Topic = Awaited<ReturnType<AdminPush["topics"]>>["items"][number];
type Devices = Awaited<ReturnType<AdminPush["devices"]>>;

export function createAdminPush({ request }: Transport): AdminPush {
  const post = <T>(path: string, body: object) => request<T>("POST", `/api/push/${path}`, { body });
  const countsOf = async (path: string, body: object) => {
    const { sent, failed } = await post<{ sent: number; failed: number }>(path, body);
    return { sent, failed };
  };
  return {
    send: (userId, message) => countsOf("send", { userId, ...message }),
    sendMany: (userIds, message) => countsOf("send-many", { userIds, ...message }),
    sendToToken: (token, payload, options) => countsOf("send-to-token", { token, payload, ...options }),
    async sendToTopic(topic, payload) {
      await post("send-to-topic", { topic, payload });
    },
    async broadcast(payload) {
      await post("broadcast", { payload });
    },
    devices: async (userId) =>
      (await request<{ tokens: Devices }>("GET", "/api/push/tokens", { query: { userId } })).tokens,
    async setMetadata(userId, deviceId, metadata) {
      await request("PATCH", "/api/push/tokens", { body: { userId, deviceId, metadata } });
    },
    async listDevices(query) {
      const { devices, cursor } = await request<{ devices: PushDevice[]; cursor: string | null }>(
        "GET",
        "/api/admin/push/devices",
        { query: { ...query } },
      );
      return { items: devices, cursor };
    },
    async topics(query) {
      const { topics, cursor } = await request<{ topics: Topic[]; cursor: string | null }>(
        "GET",
        "/api/admin/push/topics",
        { query: { ...query } },
      );
      return { items: topics, cursor };
    },
    async logs(query) {
      const { logs, cursor } = await request<{ logs: PushLog[]; cursor: string | null }>("GET", "/api/push/logs", {
        query: { ...query },
      });
      return { items: logs, cursor };
    },
  };
}
