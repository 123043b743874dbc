import type { Clock } from "../../../kernel/clock.ts";
import { AppError, notFound, serverStopping } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { PushPlatform } from "../../config/app/index.ts";
import type { Actor } from "../../db/index.ts";
import type { Deliveries } from "./delivery/deliveries.ts";
import type { FanOut, NextTarget } from "./delivery/fan-out.ts";
import type { TopicQueue } from "./delivery/topic-queue.ts";
import { CALLS_AT_ONCE_MAX, SENDS_AT_ONCE_MAX } from "./limits.ts";
import type { Registration } from "./schemas.ts";
import type { DeviceRow, PushStore } from "./store.ts";
import type { Counts, Message, Target } from "./types.ts";

/** Every device is subscribed to this topic at its first registration. */
export const TOPIC_OF_ALL = "all";

/** The operations of push. Arguments have been validated. */
export interface PushService {
  /** Errors: 401 if the user has been deleted. */
  register(userId: string, registration: Registration): Promise<DeviceRow>;
  /** No error if the user has no device with this token. */
  unregister(userId: string, token: string): Promise<void>;
  /** All devices of the user; `failed` of them have too many topics. Errors: 404 without devices. */
  subscribe(userId: string, topic: string): Promise<{ subscribed: number; failed: number }>;
  /** Errors: 404 without devices. */
  unsubscribe(userId: string, topic: string): Promise<{ unsubscribed: number; failed: number }>;
  /** Resolves when the result for each device is known. Errors: 404 without devices, 503. */
  send(userId: string, message: Message): Promise<Counts>;
  /** Each user once; users without devices are skipped. Errors: 503. */
  sendMany(userIds: readonly string[], message: Message): Promise<Counts>;
  /** The token may be unregistered. Errors: 503. */
  sendToToken(token: string, platform: PushPlatform, message: Message): Promise<Counts>;
  /** Resolves when the message is queued, on disk. Errors: 503. */
  sendToTopic(topic: string, message: Message): Promise<void>;
  /** In order of first registration. */
  devices(userId: string): DeviceRow[];
  /** Replaces the metadata. Errors: 404. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject, by: Actor): Promise<void>;
  /** Resolves when no `send` is running. */
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
    if (deps.stopping.aborted) throw serverStopping();
  };
  const deliver = async (next: NextTarget, message: Message): Promise<Counts> => {
    requireCredentials();
    if (underWay.size >= SENDS_AT_ONCE_MAX) {
      throw new AppError(503, `Too many messages are being sent (at most ${SENDS_AT_ONCE_MAX})`);
    }
    const { tried, done } = fanOut(next, message, { atOnce: CALLS_AT_ONCE_MAX, patience: null });
    underWay.add(done);
    try {
      await tried;
      return await done;
    } finally {
      // If devices cannot be read, the attempts made so far are logged nevertheless.
      void done.then(() => underWay.delete(done));
    }
  };
  /** Reads the devices of one user at a time. */
  const devicesOfAll = (userIds: readonly string[]): NextTarget => {
    const waiting = [...userIds].reverse();
    let devices: DeviceRow[] = [];
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
    register: (userId, registration) => store.register(userId, registration, { topic: TOPIC_OF_ALL, now: clock.now() }),
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
    sendMany: (userIds, message) => deliver(devicesOfAll([...new Set(userIds)]), message),
    sendToToken: (token, platform, message) => deliver(oneByOne([{ userId: null, token, platform }]), message),
    async sendToTopic(topic, message) {
      requireCredentials();
      await topics.add(topic, message);
    },
    devices: (userId) => store.devicesOf(userId),
    async setMetadata(userId, deviceId, metadata, by) {
      const isThere = await store.setMetadata(userId, deviceId, metadata, by);
      if (!isThere) throw notFound(`The user has no device "${deviceId}"`);
    },
    async idle() {
      await Promise.allSettled(underWay);
    },
  };
}

function oneByOne(targets: readonly Target[]): NextTarget {
  let index = 0;
  return () => targets[index++] ?? null;
}
