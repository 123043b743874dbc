import { unauthorized } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Actor, DatabaseFile, Transaction } from "../../db/index.ts";
import { DEVICES_PER_USER_MAX, LOGS_MAX, TOPICS_PER_DEVICE_MAX } from "./limits.ts";
import type { Registration } from "./schemas.ts";
import type { DeviceRow, TopicTarget } from "./statements/devices.ts";
import * as deviceQueries from "./statements/devices.ts";
import type { LogRow } from "./statements/logs.ts";
import * as logQueries from "./statements/logs.ts";

export type { DeviceRow, LogRow, TopicTarget };

/** The devices of a topic after `after` up to `until`, in order of first registration. */
export interface TopicRange {
  topic: string;
  after: number;
  until: number;
}

export interface NewLogEntry extends Omit<LogRow, "seq"> {
  /** If the status is `removed`, the device with this token is deleted. */
  token: string;
}

/** When a promise resolves, the change is durable. */
export interface PushStore {
  /** In order of first registration. */
  devicesOf(userId: string): DeviceRow[];
  targetsOfTopic(range: TopicRange, limit: number): TopicTarget[];
  countOfTopic(range: TopicRange): number;
  /** The newest device of a topic; 0 without any. */
  lastOfTopic(topic: string): number;
  /** Takes the token from any other device. A new device is subscribed to `topic`. Errors: 401 if the user has been deleted. */
  register(userId: string, registration: Registration, options: { topic: string; now: number }): Promise<DeviceRow>;
  unregister(userId: string, token: string): Promise<void>;
  /** All devices of the user; `failedCount` of them have too many topics. */
  subscribe(userId: string, topic: string): Promise<{ deviceCount: number; failedCount: number }>;
  /** Resolves to the number of the user's devices. */
  unsubscribe(userId: string, topic: string): Promise<number>;
  /** false: no such device. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject, by: Actor): Promise<boolean>;
  /** Adds rows to the log, and deletes the devices of those with the status `removed`. */
  record(entries: readonly NewLogEntry[]): Promise<void>;
  /** Newest first: those since a time, before a row; `userId` null: of all users. */
  logs(query: { userId: string | null; after: number; before: number; limit: number }): LogRow[];
  hasExpiredLogs(until: number): boolean;
  /** Resolves to the number of removed rows. */
  removeExpiredLogs(until: number, limit: number): Promise<number>;
}

export function createPushStore(file: DatabaseFile): PushStore {
  return {
    devicesOf: (userId) => deviceQueries.devicesOfUser.all(file, { userId }),
    targetsOfTopic: (range, limit) => deviceQueries.targetsOfTopic.all(file, { ...range, limit }),
    countOfTopic: (range) => deviceQueries.countOfTopic.get(file, range)?.count ?? 0,
    lastOfTopic: (topic) => deviceQueries.lastOfTopic.get(file, { topic })?.seq ?? 0,
    register: (userId, registration, options) => file.write((tx) => register(tx, { userId, ...registration }, options)),
    async unregister(userId, token) {
      await file.write((tx) => deviceQueries.deleteTokenOfUser.run(tx, { userId, token }));
    },
    subscribe: (userId, topic) => file.write((tx) => subscribe(tx, userId, topic)),
    unsubscribe: (userId, topic) =>
      file.write((tx) => {
        const devices = deviceQueries.devicesOfUser.all(tx, { userId });
        for (const { seq } of devices) deviceQueries.deleteSubscription.run(tx, { topic, deviceSeq: seq });
        return devices.length;
      }),
    setMetadata: (userId, deviceId, metadata, by) =>
      file.write((tx) => {
        tx.causedBy(by);
        const before = deviceQueries.metadataOfDevice.get(tx, { userId, deviceId })?.metadata;
        if (before === undefined) return false;
        const target = `push/users/${userId}/${deviceId}`;
        tx.audit(() => ({ action: "push.metadata", target, before, after: metadata }));
        return deviceQueries.setDeviceMetadata.run(tx, { userId, deviceId, metadata }) === 1;
      }),
    record: (entries) => file.write((tx) => record(tx, entries)),
    logs: ({ userId, ...range }) =>
      userId === null
        ? logQueries.logsSince.all(file, range)
        : logQueries.logsOfUserSince.all(file, { userId, ...range }),
    hasExpiredLogs: (until) => logQueries.expiredLog.get(file, { until }) !== null,
    removeExpiredLogs: (until, limit) => file.write((tx) => logQueries.deleteExpiredLogs.run(tx, { until, limit })),
  };
}

function register(
  tx: Transaction,
  device: Registration & { userId: string },
  { topic, now }: { topic: string; now: number },
): DeviceRow {
  deviceQueries.deleteTokenElsewhere.run(tx, device);
  const known = deviceQueries.updateRegistration.get(tx, { ...device, registeredAt: now });
  if (known !== null) return known;
  const { userId } = device;
  // The session was valid when the request began, but the user may have been deleted since.
  if (deviceQueries.userById.get(tx, { id: userId }) === null) throw unauthorized("Invalid token");
  const added = deviceQueries.insertDevice.get(tx, { ...device, createdAt: now, registeredAt: now });
  if (added === null) throw new Error("an inserted device has no row");
  deviceQueries.insertSubscription.run(tx, { topic, deviceSeq: added.seq });
  const surplus = (deviceQueries.countDevices.get(tx, { userId })?.count ?? 0) - DEVICES_PER_USER_MAX;
  if (surplus > 0) deviceQueries.deleteOldestDevices.run(tx, { userId, limit: surplus });
  return added;
}

function subscribe(tx: Transaction, userId: string, topic: string): { deviceCount: number; failedCount: number } {
  const devices = deviceQueries.devicesOfUser.all(tx, { userId });
  let failedCount = 0;
  for (const { seq: deviceSeq } of devices) {
    if (deviceQueries.subscription.get(tx, { topic, deviceSeq }) !== null) continue;
    const topicCount = deviceQueries.countTopics.get(tx, { deviceSeq })?.count ?? 0;
    if (topicCount < TOPICS_PER_DEVICE_MAX) deviceQueries.insertSubscription.run(tx, { topic, deviceSeq });
    else failedCount += 1;
  }
  return { deviceCount: devices.length, failedCount };
}

function record(tx: Transaction, entries: readonly NewLogEntry[]): void {
  for (const entry of entries) {
    logQueries.insertLog.run(tx, entry);
    if (entry.status === "removed") deviceQueries.deleteToken.run(tx, { token: entry.token });
  }
  logQueries.deleteLogsBeyond.run(tx, { kept: LOGS_MAX });
}
