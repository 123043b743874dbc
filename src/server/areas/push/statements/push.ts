import { and, asc, count, desc, eq, gt, gte, inArray, lt, lte, max, min, ne, notInArray, or, sql } from "drizzle-orm";
import { users } from "../../../../../schema/auth.ts";
import { pushDevices as devices, pushLogs as logs, pushTopics as topics } from "../../../../../schema/push.ts";
import { reading, writing } from "../../../db/declare-query.ts";
import type { RowOf } from "../../../db/query.ts";

export type DeviceRow = typeof devices.$inferSelect;
type DeviceKey = Pick<DeviceRow, "userId" | "deviceId">;

/** Devices of a user, in order of first registration. */
export const devicesOfUser = reading((db, v: { userId: string }) =>
  db.select().from(devices).where(eq(devices.userId, v.userId)).orderBy(asc(devices.seq)),
);

/** Gives a user's devices to another one, but for those that this one has under the same id. */
export const moveDevices = writing((db, v: { userId: string; to: string }) =>
  db
    .update(devices)
    .set({ userId: v.to })
    .where(
      and(
        eq(devices.userId, v.userId),
        notInArray(
          devices.deviceId,
          db.select({ deviceId: devices.deviceId }).from(devices).where(eq(devices.userId, v.to)),
        ),
      ),
    ),
);

export const deviceBySeq = reading((db, v: { seq: number }) => db.select().from(devices).where(eq(devices.seq, v.seq)));

export const deviceByToken = reading((db, v: { token: string }) =>
  db.select({ seq: devices.seq, platform: devices.platform }).from(devices).where(eq(devices.token, v.token)),
);

/** Devices before a row, newest first, without metadata, which may be large. */
export const devicesBefore = reading((db, v: { before: number; limit: number }) =>
  db
    .select({ seq: devices.seq, platform: devices.platform })
    .from(devices)
    .where(lt(devices.seq, v.before))
    .orderBy(desc(devices.seq))
    .limit(v.limit),
);

export const devicesOfUserBefore = reading((db, v: { userId: string; before: number }) =>
  db
    .select({ seq: devices.seq, platform: devices.platform })
    .from(devices)
    .where(and(eq(devices.userId, v.userId), lt(devices.seq, v.before)))
    .orderBy(desc(devices.seq)),
);

export const devicesOfTopicBefore = reading((db, v: { topic: string; before: number; limit: number }) =>
  db
    .select({ seq: devices.seq, platform: devices.platform })
    .from(topics)
    .innerJoin(devices, eq(devices.seq, topics.deviceSeq))
    .where(and(eq(topics.topic, v.topic), lt(topics.deviceSeq, v.before)))
    .orderBy(desc(topics.deviceSeq))
    .limit(v.limit),
);

export const topicsOfDevice = reading((db, v: { deviceSeq: number }) =>
  db.select({ topic: topics.topic }).from(topics).where(eq(topics.deviceSeq, v.deviceSeq)).orderBy(asc(topics.topic)),
);

/** First topic that is not before `from`; null: none. */
export const firstTopic = reading((db, v: { from: string }) =>
  db
    .select({ topic: min(topics.topic).as("topic") })
    .from(topics)
    .where(gte(topics.topic, v.from)),
);

export const countDevices = reading((db, v: { userId: string }) =>
  db
    .select({ count: count().as("count") })
    .from(devices)
    .where(eq(devices.userId, v.userId)),
);

export const userById = reading((db, v: { id: string }) =>
  db.select({ id: users.id }).from(users).where(eq(users.id, v.id)),
);

export const insertDevice = writing((db, v: Omit<DeviceRow, "seq" | "metadata">) =>
  db
    .insert(devices)
    .values({
      userId: v.userId,
      deviceId: v.deviceId,
      token: v.token,
      platform: v.platform,
      createdAt: v.createdAt,
      registeredAt: v.registeredAt,
    })
    .returning(),
);

/** Updates a known device that registers again. */
export const updateRegistration = writing((db, v: DeviceKey & Pick<DeviceRow, "token" | "platform" | "registeredAt">) =>
  db
    .update(devices)
    .set({ token: v.token, platform: v.platform, registeredAt: v.registeredAt })
    .where(and(eq(devices.userId, v.userId), eq(devices.deviceId, v.deviceId)))
    .returning(),
);

export const metadataOfDevice = reading((db, v: DeviceKey) =>
  db
    .select({ metadata: devices.metadata })
    .from(devices)
    .where(and(eq(devices.userId, v.userId), eq(devices.deviceId, v.deviceId))),
);

export const setDeviceMetadata = writing((db, v: DeviceKey & Pick<DeviceRow, "metadata">) =>
  db
    .update(devices)
    .set({ metadata: v.metadata })
    .where(and(eq(devices.userId, v.userId), eq(devices.deviceId, v.deviceId))),
);

/** Deletes other devices with this device's token. */
export const deleteTokenElsewhere = writing((db, v: DeviceKey & { token: string }) =>
  db
    .delete(devices)
    .where(and(eq(devices.token, v.token), or(ne(devices.userId, v.userId), ne(devices.deviceId, v.deviceId)))),
);

export const deleteTokenOfUser = writing((db, v: { userId: string; token: string }) =>
  db.delete(devices).where(and(eq(devices.token, v.token), eq(devices.userId, v.userId))),
);

export const deleteToken = writing((db, v: { token: string }) => db.delete(devices).where(eq(devices.token, v.token)));

/** Deletes the user's devices that registered longest ago. */
export const deleteOldestDevices = writing((db, v: { userId: string; limit: number }) => {
  const oldest = db
    .select({ seq: devices.seq })
    .from(devices)
    .where(eq(devices.userId, v.userId))
    .orderBy(asc(devices.registeredAt), asc(devices.seq))
    .limit(v.limit);
  return db.delete(devices).where(inArray(devices.seq, oldest));
});

/** Devices of a topic after `after` up to `until`, in order of first registration. */
export interface TopicRange {
  topic: string;
  after: number;
  until: number;
}

/** Devices of a topic with the columns that sending requires, in order of first registration. */
export const targetsOfTopic = reading((db, v: TopicRange & { limit: number }) =>
  db
    .select({ seq: devices.seq, userId: devices.userId, token: devices.token, platform: devices.platform })
    .from(topics)
    .innerJoin(devices, eq(devices.seq, topics.deviceSeq))
    .where(and(eq(topics.topic, v.topic), gt(topics.deviceSeq, v.after), lte(topics.deviceSeq, v.until)))
    .orderBy(asc(topics.deviceSeq))
    .limit(v.limit),
);
export type TopicTarget = RowOf<typeof targetsOfTopic>;

export const countOfTopic = reading((db, v: TopicRange) =>
  db
    .select({ count: count().as("count") })
    .from(topics)
    .where(and(eq(topics.topic, v.topic), gt(topics.deviceSeq, v.after), lte(topics.deviceSeq, v.until))),
);

export const lastOfTopic = reading((db, v: { topic: string }) =>
  db
    .select({ seq: max(topics.deviceSeq).as("seq") })
    .from(topics)
    .where(eq(topics.topic, v.topic)),
);

export const countTopics = reading((db, v: { deviceSeq: number }) =>
  db
    .select({ count: count().as("count") })
    .from(topics)
    .where(eq(topics.deviceSeq, v.deviceSeq)),
);

type Subscription = typeof topics.$inferSelect;

export const subscription = reading((db, v: Subscription) =>
  db
    .select()
    .from(topics)
    .where(and(eq(topics.topic, v.topic), eq(topics.deviceSeq, v.deviceSeq))),
);

export const insertSubscription = writing((db, v: Subscription) =>
  db.insert(topics).values({ topic: v.topic, deviceSeq: v.deviceSeq }),
);

export const deleteSubscription = writing((db, v: Subscription) =>
  db.delete(topics).where(and(eq(topics.topic, v.topic), eq(topics.deviceSeq, v.deviceSeq))),
);

export type LogRow = typeof logs.$inferSelect;

export const insertLog = writing((db, v: Omit<LogRow, "seq">) =>
  db.insert(logs).values({
    id: v.id,
    userId: v.userId,
    status: v.status,
    platform: v.platform,
    title: v.title,
    body: v.body,
    error: v.error,
    timestamp: v.timestamp,
  }),
);

/** Deletes all but the newest `kept` rows of the log, found by number, as rows are numbered without gaps. */
export const deleteLogsBeyond = writing((db, v: { kept: number }) =>
  db.delete(logs).where(lte(logs.seq, sql`(SELECT max(seq) FROM push_logs) - ${v.kept}`)),
);

interface LogRange {
  /** Time in milliseconds since 1970. */
  after: number;
  /** Number of a row. */
  before: number;
  limit: number;
}

/** Rows of the log since a time, before a row, newest first. */
export const logsSince = reading((db, v: LogRange) =>
  db
    .select()
    .from(logs)
    .where(and(gt(logs.timestamp, v.after), lt(logs.seq, v.before)))
    .orderBy(desc(logs.seq))
    .limit(v.limit),
);

export const logsOfUserSince = reading((db, v: LogRange & { userId: string }) =>
  db
    .select()
    .from(logs)
    .where(and(eq(logs.userId, v.userId), gt(logs.timestamp, v.after), lt(logs.seq, v.before)))
    .orderBy(desc(logs.seq))
    .limit(v.limit),
);

export const expiredLog = reading((db, v: { until: number }) =>
  db.select({ seq: logs.seq }).from(logs).where(lte(logs.timestamp, v.until)).limit(1),
);

/** Deletes at most `limit` expired rows of the log, so that one step never delays other writes for long. */
export const deleteExpiredLogs = writing((db, v: { until: number; limit: number }) => {
  const expired = db
    .select({ seq: logs.seq })
    .from(logs)
    .where(lte(logs.timestamp, v.until))
    .orderBy(asc(logs.timestamp))
    .limit(v.limit);
  return db.delete(logs).where(inArray(logs.seq, expired));
});
