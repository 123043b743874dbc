import { and, asc, count, eq, gt, inArray, lte, max, ne, or } from "drizzle-orm";
import { users } from "../../../schema/auth.ts";
import { pushDevices as devices, pushTopics as topics } from "../../../schema/push.ts";
import { reading, writing } from "../../db/declare-query.ts";
import type { RowOf } from "../../db/query.ts";

export type DeviceRow = typeof devices.$inferSelect;
type DeviceKey = Pick<DeviceRow, "userId" | "deviceId">;

/** In order of first registration. */
export const devicesOfUser = reading((db, v: { userId: string }) =>
  db.select().from(devices).where(eq(devices.userId, v.userId)).orderBy(asc(devices.seq)),
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

/** A known device has registered again. */
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

/** Devices other than this one that have its token. */
export const deleteTokenElsewhere = writing((db, v: DeviceKey & { token: string }) =>
  db
    .delete(devices)
    .where(and(eq(devices.token, v.token), or(ne(devices.userId, v.userId), ne(devices.deviceId, v.deviceId)))),
);

export const deleteTokenOfUser = writing((db, v: { userId: string; token: string }) =>
  db.delete(devices).where(and(eq(devices.token, v.token), eq(devices.userId, v.userId))),
);

export const deleteToken = writing((db, v: { token: string }) => db.delete(devices).where(eq(devices.token, v.token)));

/** Those that registered longest ago. */
export const deleteOldestDevices = writing((db, v: { userId: string; limit: number }) => {
  const oldest = db
    .select({ seq: devices.seq })
    .from(devices)
    .where(eq(devices.userId, v.userId))
    .orderBy(asc(devices.registeredAt), asc(devices.seq))
    .limit(v.limit);
  return db.delete(devices).where(inArray(devices.seq, oldest));
});

interface TopicRange {
  topic: string;
  after: number;
  until: number;
}

/** What sending to a device requires, in order of first registration. */
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
