import type { Clock } from "../../../kernel/clock.ts";
import { unauthorized } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import type { Actor, DatabaseFile, Transaction } from "../../db/index.ts";
import {
  DEVICES_PER_USER_MAX,
  LOG_RETENTION_MS,
  LOGS_MAX,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
  TOPICS_PER_DEVICE_MAX,
} from "./limits.ts";
import type { Registration } from "./schemas.ts";
import type { DeviceRow, LogRow, TopicRange, TopicTarget } from "./statements/push.ts";
import * as queries from "./statements/push.ts";

export interface NewLogEntry extends Omit<LogRow, "seq"> {
  /** Token of the target. If the status is `removed`, its device is deleted. */
  token: string;
}

/** Devices, topics and the log in system.db. When a promise resolves, the change is durable. */
export class PushStore {
  readonly file: DatabaseFile;

  constructor(file: DatabaseFile) {
    this.file = file;
  }

  /** Lists the devices of a user, in order of first registration. */
  devicesOf(userId: string): DeviceRow[] {
    return queries.devicesOfUser.all(this.file, { userId });
  }

  targetsOfTopic(range: TopicRange, limit: number): TopicTarget[] {
    return queries.targetsOfTopic.all(this.file, { ...range, limit });
  }

  countOfTopic(range: TopicRange): number {
    return queries.countOfTopic.get(this.file, range)?.count ?? 0;
  }

  /** Returns the number of the newest device of a topic; 0 without any. */
  lastOfTopic(topic: string): number {
    return queries.lastOfTopic.get(this.file, { topic })?.seq ?? 0;
  }

  /**
   * Registers a device and takes its token from any other one. A new device is subscribed to `topic`. Errors: 401 if the user has
   * been deleted.
   */
  register(userId: string, registration: Registration, options: { topic: string; now: number }): Promise<DeviceRow> {
    return this.file.write((tx) => register(tx, { userId, ...registration }, options));
  }

  async unregister(userId: string, token: string): Promise<void> {
    await this.file.write((tx) => queries.deleteTokenOfUser.run(tx, { userId, token }));
  }

  /** Subscribes all devices of the user; `failedCount` of them have too many topics. */
  subscribe(userId: string, topic: string): Promise<{ deviceCount: number; failedCount: number }> {
    return this.file.write((tx) => subscribe(tx, userId, topic));
  }

  /** Unsubscribes all devices of the user. Resolves to their number. */
  unsubscribe(userId: string, topic: string): Promise<number> {
    return this.file.write((tx) => {
      const devices = queries.devicesOfUser.all(tx, { userId });
      for (const { seq } of devices) queries.deleteSubscription.run(tx, { topic, deviceSeq: seq });
      return devices.length;
    });
  }

  /** Replaces the metadata of a device. Resolves to false if there is no such device. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject, by: Actor): Promise<boolean> {
    return this.file.write((tx) => {
      tx.causedBy(by);
      const before = queries.metadataOfDevice.get(tx, { userId, deviceId })?.metadata;
      if (before === undefined) return false;
      const target = `push/users/${userId}/${deviceId}`;
      tx.audit(() => ({ action: "push.metadata", target, before, after: metadata }));
      return queries.setDeviceMetadata.run(tx, { userId, deviceId, metadata }) === 1;
    });
  }

  /** Adds rows to the log, and deletes the devices of those with the status `removed`. */
  record(entries: readonly NewLogEntry[]): Promise<void> {
    return this.file.write((tx) => {
      for (const entry of entries) {
        queries.insertLog.run(tx, entry);
        if (entry.status === "removed") queries.deleteToken.run(tx, { token: entry.token });
      }
      queries.deleteLogsBeyond.run(tx, { kept: LOGS_MAX });
    });
  }

  /** Lists rows of the log since a time, before a row, newest first; `userId` null: of all users. */
  logs({ userId, ...range }: { userId: string | null; after: number; before: number; limit: number }): LogRow[] {
    return userId === null
      ? queries.logsSince.all(this.file, range)
      : queries.logsOfUserSince.all(this.file, { userId, ...range });
  }

  /** Starts a sweep that removes rows of the log after LOG_RETENTION_MS, in bounded steps. Expired rows are never shown, removed or not. */
  startSweep({ clock, logger }: { clock: Clock; logger: Logger }): () => Promise<void> {
    return startSweeping({
      clock,
      intervalMs: SWEEP_INTERVAL_MS,
      pauseMs: SWEEP_PAUSE_MS,
      sweep: async () => {
        const until = clock.now() - LOG_RETENTION_MS;
        if (queries.expiredLog.get(this.file, { until }) === null) return false;
        const limit = SWEEP_STEP_ROWS;
        return (await this.file.write((tx) => queries.deleteExpiredLogs.run(tx, { until, limit }))) === limit;
      },
      onFailure: (cause) => logger.error("push: removing old rows of the log failed", { cause }),
    });
  }
}

function register(
  tx: Transaction,
  device: Registration & { userId: string },
  { topic, now }: { topic: string; now: number },
): DeviceRow {
  queries.deleteTokenElsewhere.run(tx, device);
  const known = queries.updateRegistration.get(tx, { ...device, registeredAt: now });
  if (known !== null) return known;
  const { userId } = device;
  // The session was valid when the request began, but the user may have been deleted since.
  if (queries.userById.get(tx, { id: userId }) === null) throw unauthorized("Invalid token");
  const added = queries.insertDevice.get(tx, { ...device, createdAt: now, registeredAt: now });
  if (added === null) throw new Error("an inserted device has no row");
  queries.insertSubscription.run(tx, { topic, deviceSeq: added.seq });
  const surplus = (queries.countDevices.get(tx, { userId })?.count ?? 0) - DEVICES_PER_USER_MAX;
  if (surplus > 0) queries.deleteOldestDevices.run(tx, { userId, limit: surplus });
  return added;
}

function subscribe(tx: Transaction, userId: string, topic: string): { deviceCount: number; failedCount: number } {
  const devices = queries.devicesOfUser.all(tx, { userId });
  let failedCount = 0;
  for (const { seq: deviceSeq } of devices) {
    if (queries.subscription.get(tx, { topic, deviceSeq }) !== null) continue;
    const topicCount = queries.countTopics.get(tx, { deviceSeq })?.count ?? 0;
    if (topicCount < TOPICS_PER_DEVICE_MAX) queries.insertSubscription.run(tx, { topic, deviceSeq });
    else failedCount += 1;
  }
  return { deviceCount: devices.length, failedCount };
}
