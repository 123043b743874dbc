import type { JsonObject } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

/** Push notification. With `silent` nothing is shown, and the app receives only `data`. */
export interface PushMessage {
  title?: string;
  body?: string;
  silent?: boolean;
  image?: string;
  sound?: string;
  badge?: number;
  data?: JsonObject;
  collapseId?: string;
  /** Time to live in seconds. */
  ttl?: number;
  /** Raw members of the FCM message. */
  fcm?: JsonObject;
}

interface Counts {
  sent: number;
  failed: number;
}

export interface AdminPush {
  /** Sends a message to all devices of a user. Errors: `not_found` for a user without devices. */
  send(userId: string, message: PushMessage): Promise<Counts>;
  sendMany(userIds: readonly string[], message: PushMessage): Promise<Counts>;
  sendToToken(token: string, message: PushMessage, options?: { platform?: PushPlatform }): Promise<Counts>;
  /** Queues a message for the subscribers of a topic. Resolves when it is queued. */
  sendToTopic(topic: string, message: PushMessage): Promise<void>;
  /** Queues a message for all devices. Resolves when it is queued. */
  broadcast(message: PushMessage): Promise<void>;
  devices(userId: string): Promise<{ id: string; token: string; platform: string; createdAt: string }[]>;
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>;
  /** Returns devices that match all of the options, newest first. */
  listDevices(options?: {
    userId?: string;
    token?: string;
    platform?: PushPlatform;
    topic?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: PushDevice[]; cursor: string | null }>;
  /** Returns topics, ordered by name. */
  topics(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: { topic: string; devices: number }[]; cursor: string | null }>;
  /** Returns the messages sent within the last day, newest first. */
  logs(options?: {
    userId?: string;
    status?: PushLog["status"];
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: PushLog[]; cursor: string | null }>;
}

export type PushPlatform = "android" | "ios" | "web";

export interface PushDevice {
  /** Id of the device, unique per user. */
  id: string;
  userId: string;
  token: string;
  platform: PushPlatform;
  metadata: JsonObject;
  topics: string[];
  createdAt: string;
  /** Time of the latest registration. */
  registeredAt: string;
}

export interface PushLog {
  id: string;
  userId: string | null;
  status: "sent" | "failed" | "removed";
  platform: string;
  title: string | null;
  body: string | null;
  timestamp: string | number;
  error: string | null;
}

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
