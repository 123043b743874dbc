import type { PushPlatform } from "../config/app-access.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError, notFound } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Deliveries } from "./delivery/deliveries.ts";
import type { FanOut, NextTarget } from "./delivery/fan-out.ts";
import type { TopicQueue } from "./delivery/topic-queue.ts";
import { CALLS_AT_ONCE_MAX, LOG_RETENTION_MS, SENDS_AT_ONCE_MAX } from "./limits.ts";
import type { Registration } from "./requests.ts";
import type { PushStore } from "./store.ts";
import type { Counts, Device, LogEntry, Message, Target } from "./types.ts";

/** The topic that every device joins when it registers for the first time. Spec: Push endpoints. */
export const TOPIC_OF_ALL = "all";

/** What clients and administrators do with push. Its arguments have been checked. Spec: Push endpoints; decisions 11. */
export interface PushService {
  /** Errors: 401 the user has been deleted meanwhile. */
  register(userId: string, registration: Registration): Promise<Device>;
  /** Also for a token that nobody, or somebody else, has. */
  unregister(userId: string, token: string): Promise<void>;
  /** All of the user's devices; `failed` are those with too many topics. Errors: 404 there is none. */
  subscribe(userId: string, topic: string): Promise<{ subscribed: number; failed: number }>;
  unsubscribe(userId: string, topic: string): Promise<{ unsubscribed: number; failed: number }>;
  /** Resolves when every device is decided. Errors: 404 the user has no devices, 503. */
  send(userId: string, message: Message): Promise<Counts>;
  /** Users without devices are skipped. Errors: 503. */
  sendMany(userIds: readonly string[], message: Message): Promise<Counts>;
  /** The token need not be registered. Errors: 503. */
  sendToToken(token: string, platform: PushPlatform, message: Message): Promise<Counts>;
  /** Returns when the message waits to be sent. Errors: 503. */
  sendToTopic(topic: string, message: Message): void;
  devices(userId: string): Device[];
  /** Replaces it whole. Errors: 404. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>;
  /** Of the last day, newest first; `userId` null: everyone's. */
  logs(query: { userId: string | null; limit: number }): LogEntry[];
  /** Resolves when no `send` is under way. */
  idle(): Promise<void>;
}

export function createPushService(deps: {
  store: PushStore;
  deliveries: Deliveries;
  fanOut: FanOut;
  topics: TopicQueue;
  clock: Clock;
  stopping: AbortSignal;
}): PushService {
  const { store, deliveries, fanOut, topics, clock } = deps;
  const underWay = new Set<Promise<Counts>>();

  const requireCredentials = (): void => {
    if (!deliveries.isConfigured) throw new AppError(503, "Push credentials are not configured");
    if (deps.stopping.aborted) throw new AppError(503, "The server is stopping");
  };
  const deliver = async (next: NextTarget, message: Message): Promise<Counts> => {
    requireCredentials();
    if (underWay.size >= SENDS_AT_ONCE_MAX) {
      throw new AppError(503, `Too many messages are being sent (at most ${SENDS_AT_ONCE_MAX} at once)`);
    }
    const { tried, done } = fanOut(next, message, { atOnce: CALLS_AT_ONCE_MAX, isPatient: false });
    underWay.add(done);
    try {
      await tried;
      return await done;
    } finally {
      // Where devices cannot be read, those that were tried are logged all the same.
      void done.then(() => underWay.delete(done));
    }
  };
  /** User by user, as they are needed. */
  const devicesOfAll = (userIds: readonly string[]): NextTarget => {
    const waiting = [...userIds].reverse();
    let devices: Device[] = [];
    return () => {
      for (let userId = waiting.at(-1); devices.length === 0 && userId !== undefined; userId = waiting.at(-1)) {
        devices = store.devicesOf(userId).reverse();
        waiting.pop();
      }
      return devices.pop() ?? null;
    };
  };
  const noDevices = () => notFound("The user has no registered devices");

  return {
    register: (userId, registration) => store.register({ ...registration, userId }, TOPIC_OF_ALL, clock.now()),
    unregister: (userId, token) => store.unregister(userId, token),
    async subscribe(userId, topic) {
      const { deviceCount, failedCount } = await store.subscribe(userId, topic);
      if (deviceCount === 0) throw noDevices();
      return { subscribed: deviceCount - failedCount, failed: failedCount };
    },
    async unsubscribe(userId, topic) {
      const deviceCount = await store.unsubscribe(userId, topic);
      if (deviceCount === 0) throw noDevices();
      return { unsubscribed: deviceCount, failed: 0 };
    },
    async send(userId, message) {
      const devices = store.devicesOf(userId);
      if (devices.length === 0) throw noDevices();
      return deliver(oneByOne(devices), message);
    },
    sendMany: (userIds, message) => deliver(devicesOfAll(userIds), message),
    sendToToken: (token, platform, message) => deliver(oneByOne([{ userId: null, token, platform }]), message),
    sendToTopic(topic, message) {
      requireCredentials();
      topics.add(topic, message);
    },
    devices: (userId) => store.devicesOf(userId),
    async setMetadata(userId, deviceId, metadata) {
      const isThere = await store.setMetadata(userId, deviceId, metadata);
      if (!isThere) throw notFound(`The user has no device "${deviceId}"`);
    },
    logs: ({ userId, limit }) => store.logs({ userId, limit, after: clock.now() - LOG_RETENTION_MS }),
    async idle() {
      await Promise.allSettled(underWay);
    },
  };
}

function oneByOne(targets: readonly Target[]): NextTarget {
  let index = 0;
  return () => targets[index++] ?? null;
}
