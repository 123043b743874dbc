import type { PushPlatform } from "../config/app-access.ts";
import type { DatabaseFile, SqlValue, Transaction } from "../db/index.ts";
import { unauthorized } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { DEVICES_PER_USER_MAX, LOGS_MAX, TOPICS_PER_DEVICE_MAX } from "./limits.ts";
import type { Device, LogEntry, LogStatus } from "./types.ts";

const DEVICE = "seq, userId, deviceId, token, platform, metadata, createdAt";
const OF_USER = `SELECT ${DEVICE} FROM push_devices WHERE userId = ?1 ORDER BY seq`;
const OF_TOPIC = `SELECT ${DEVICE} FROM push_topics JOIN push_devices ON seq = deviceSeq
  WHERE topic = ?1 AND deviceSeq > ?2 AND deviceSeq <= ?3 ORDER BY deviceSeq LIMIT ?4`;
const COUNT_OF_TOPIC =
  "SELECT count(*) AS count FROM push_topics WHERE topic = ?1 AND deviceSeq > ?2 AND deviceSeq <= ?3";
const LAST_OF_TOPIC = "SELECT max(deviceSeq) AS seq FROM push_topics WHERE topic = ?1";
const FIND = `SELECT ${DEVICE} FROM push_devices WHERE userId = ?1 AND deviceId = ?2`;

const DELETE_TOKEN_ELSEWHERE = "DELETE FROM push_devices WHERE token = ?1 AND (userId <> ?2 OR deviceId <> ?3)";
const REGISTER_AGAIN = `UPDATE push_devices SET token = ?3, platform = ?4, registeredAt = ?5
  WHERE userId = ?1 AND deviceId = ?2`;
// From users: who has been deleted meanwhile gets no device.
const REGISTER = `INSERT INTO push_devices (userId, deviceId, token, platform, createdAt, registeredAt)
  SELECT id, ?2, ?3, ?4, ?5, ?5 FROM users WHERE id = ?1`;
const DELETE_OLDEST = `DELETE FROM push_devices WHERE seq IN
  (SELECT seq FROM push_devices WHERE userId = ?1 ORDER BY registeredAt DESC, seq DESC LIMIT -1 OFFSET ?2)`;
const UNREGISTER = "DELETE FROM push_devices WHERE token = ?1 AND userId = ?2";
const DELETE_TOKEN = "DELETE FROM push_devices WHERE token = ?1";
const SET_METADATA = "UPDATE push_devices SET metadata = ?3 WHERE userId = ?1 AND deviceId = ?2";

const SUBSCRIBE = `INSERT OR IGNORE INTO push_topics (topic, deviceSeq)
  SELECT ?1, ?2 WHERE (SELECT count(*) FROM push_topics WHERE deviceSeq = ?2) < ?3`;
const IS_SUBSCRIBED = "SELECT 1 FROM push_topics WHERE topic = ?1 AND deviceSeq = ?2";
const UNSUBSCRIBE = "DELETE FROM push_topics WHERE topic = ?1 AND deviceSeq = ?2";

const LOG = "id, userId, status, platform, title, body, error, timestamp";
const INSERT_LOG = `INSERT INTO push_logs (${LOG}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`;
// Rows are numbered without gaps, so that those over the limit are found by their number.
const DELETE_OVER_LIMIT = "DELETE FROM push_logs WHERE seq <= (SELECT max(seq) FROM push_logs) - ?1";
const LOGS = `SELECT ${LOG} FROM push_logs WHERE timestamp > ?1 ORDER BY seq DESC LIMIT ?2`;
const LOGS_OF_USER = `SELECT ${LOG} FROM push_logs WHERE userId = ?3 AND timestamp > ?1 ORDER BY seq DESC LIMIT ?2`;
const HAS_EXPIRED = "SELECT 1 FROM push_logs WHERE timestamp <= ?1 LIMIT 1";
const DELETE_EXPIRED = `DELETE FROM push_logs WHERE seq IN
  (SELECT seq FROM push_logs WHERE timestamp <= ?1 ORDER BY timestamp LIMIT ?2)`;

type DeviceRow = Omit<Device, "metadata"> & { metadata: string };
type LogRow = Omit<LogEntry, "timestamp"> & { timestamp: number };

export interface NewDevice {
  userId: string;
  deviceId: string;
  token: string;
  platform: PushPlatform;
}

/** A part of a topic: the devices after `after` up to `until`, in the order of their first registration. */
export interface TopicRange {
  topic: string;
  after: number;
  until: number;
}

export interface NewLogEntry extends Omit<LogRow, "status"> {
  status: LogStatus;
  /** Of `removed`: the device that goes. */
  token: string;
}

/** Everything is durable when it resolves. */
export interface PushStore {
  /** In the order of their first registration. */
  devicesOf(userId: string): Device[];
  /** null: no such device. */
  find(userId: string, deviceId: string): Device | null;
  devicesOfTopic(range: TopicRange, limit: number): Device[];
  countOfTopic(range: TopicRange): number;
  /** The newest device of a topic; 0 when it has none. */
  lastOfTopic(topic: string): number;
  /** Takes the token from any other device. A new device joins `topic`. Errors: 401 the user has been deleted meanwhile. */
  register(device: NewDevice, topic: string, now: number): Promise<Device>;
  unregister(userId: string, token: string): Promise<void>;
  /** All devices of the user; `failed` are those with too many topics. */
  subscribe(userId: string, topic: string): Promise<{ deviceCount: number; failedCount: number }>;
  /** Gives the number of the user's devices. */
  unsubscribe(userId: string, topic: string): Promise<number>;
  /** false: no such device. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<boolean>;
  /** Adds rows to the log, and removes the devices of those that are `removed`. */
  record(entries: readonly NewLogEntry[]): Promise<void>;
  /** Newest first; `userId` null: everyone's. */
  logs(query: { userId: string | null; after: number; limit: number }): LogEntry[];
  hasExpiredLogs(until: number): boolean;
  /** Gives how many went. */
  removeExpiredLogs(until: number, limit: number): Promise<number>;
}

export function createPushStore(file: DatabaseFile): PushStore {
  const all = <R>(sql: string, ...params: SqlValue[]): R[] => file.query<R>(sql).all(...params);
  const one = <R>(sql: string, ...params: SqlValue[]): R | null => file.query<R>(sql).get(...params);
  const bounds = ({ topic, after, until }: TopicRange) => [topic, after, until] as const;

  return {
    devicesOf: (userId) => all<DeviceRow>(OF_USER, userId).map(toDevice),
    find: (userId, deviceId) => found(one<DeviceRow>(FIND, userId, deviceId)),
    devicesOfTopic: (range, limit) => all<DeviceRow>(OF_TOPIC, ...bounds(range), limit).map(toDevice),
    countOfTopic: (range) => one<{ count: number }>(COUNT_OF_TOPIC, ...bounds(range))?.count ?? 0,
    lastOfTopic: (topic) => one<{ seq: number | null }>(LAST_OF_TOPIC, topic)?.seq ?? 0,
    register: (device, topic, now) => file.write((tx) => register(tx, device, topic, now)),
    async unregister(userId, token) {
      await file.write((tx) => tx.query(UNREGISTER).run(token, userId).changes);
    },
    subscribe: (userId, topic) => file.write((tx) => subscribe(tx, userId, topic)),
    unsubscribe: (userId, topic) =>
      file.write((tx) => {
        const devices = devicesIn(tx, userId);
        for (const { seq } of devices) tx.query(UNSUBSCRIBE).run(topic, seq);
        return devices.length;
      }),
    setMetadata: (userId, deviceId, metadata) =>
      file.write((tx) => tx.query(SET_METADATA).run(userId, deviceId, JSON.stringify(metadata)).changes === 1),
    record: (entries) => file.write((tx) => record(tx, entries)),
    logs({ userId, after, limit }) {
      const rows = userId === null ? all<LogRow>(LOGS, after, limit) : all<LogRow>(LOGS_OF_USER, after, limit, userId);
      return rows.map((row) => ({ ...row, timestamp: new Date(row.timestamp).toISOString() }));
    },
    hasExpiredLogs: (until) => one(HAS_EXPIRED, until) !== null,
    removeExpiredLogs: (until, limit) => file.write((tx) => tx.query(DELETE_EXPIRED).run(until, limit).changes),
  };
}

function register(tx: Transaction, device: NewDevice, topic: string, now: number): Device {
  const { userId, deviceId, token, platform } = device;
  tx.query(DELETE_TOKEN_ELSEWHERE).run(token, userId, deviceId);
  if (tx.query(REGISTER_AGAIN).run(userId, deviceId, token, platform, now).changes === 0) {
    const { changes, lastInsertRowid } = tx.query(REGISTER).run(userId, deviceId, token, platform, now);
    if (changes === 0) throw unauthorized("Invalid token");
    tx.query(SUBSCRIBE).run(topic, lastInsertRowid, TOPICS_PER_DEVICE_MAX);
    tx.query(DELETE_OLDEST).run(userId, DEVICES_PER_USER_MAX);
  }
  const row = tx.query<DeviceRow>(FIND).get(userId, deviceId);
  if (row === null) throw new Error("a device that has just been registered is not there");
  return toDevice(row);
}

function subscribe(tx: Transaction, userId: string, topic: string): { deviceCount: number; failedCount: number } {
  const devices = devicesIn(tx, userId);
  const refused = devices.filter(({ seq }) => {
    if (tx.query(SUBSCRIBE).run(topic, seq, TOPICS_PER_DEVICE_MAX).changes > 0) return false;
    return tx.query(IS_SUBSCRIBED).get(topic, seq) === null;
  });
  return { deviceCount: devices.length, failedCount: refused.length };
}

function record(tx: Transaction, entries: readonly NewLogEntry[]): void {
  for (const { id, userId, status, platform, title, body, error, timestamp, token } of entries) {
    tx.query(INSERT_LOG).run(id, userId, status, platform, title, body, error, timestamp);
    if (status === "removed") tx.query(DELETE_TOKEN).run(token);
  }
  tx.query(DELETE_OVER_LIMIT).run(LOGS_MAX);
}

const devicesIn = (tx: Transaction, userId: string): DeviceRow[] => tx.query<DeviceRow>(OF_USER).all(userId);

const found = (row: DeviceRow | null): Device | null => (row === null ? null : toDevice(row));

// This column has been written from an object by `setMetadata`, or is the empty one that it begins as.
const toDevice = (row: DeviceRow): Device => ({ ...row, metadata: JSON.parse(row.metadata) as JsonObject });
