// biome-ignore lint/suspicious/noDeprecatedImports: another overload of primaryKey is meant
import { index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { JsonObject } from "../src/kernel/json/json.ts";
import { users } from "./auth.ts";

/** Devices that take push notifications. `seq` is the order of their first registration. */
export const pushDevices = sqliteTable(
  "push_devices",
  {
    seq: integer().primaryKey({ autoIncrement: true }),
    userId: text()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    deviceId: text().notNull(),
    token: text().notNull().unique(),
    platform: text({ enum: ["android", "ios", "web"] }).notNull(),
    metadata: text({ mode: "json" }).$type<JsonObject>().notNull().default({}),
    createdAt: integer().notNull(),
    registeredAt: integer().notNull(),
  },
  (table) => [unique().on(table.userId, table.deviceId)],
);

/** Topics to which devices are subscribed. */
export const pushTopics = sqliteTable(
  "push_topics",
  {
    topic: text().notNull(),
    deviceSeq: integer()
      .notNull()
      .references(() => pushDevices.seq, { onDelete: "cascade" }),
  },
  (table) => [
    primaryKey({ columns: [table.topic, table.deviceSeq] }),
    index("push_topics_deviceSeq").on(table.deviceSeq),
  ],
);

/** Outcome of each message and device; kept for a day. `userId` null: sent to a bare token. */
export const pushLogs = sqliteTable(
  "push_logs",
  {
    seq: integer().primaryKey({ autoIncrement: true }),
    id: text().notNull(),
    userId: text(),
    status: text({ enum: ["sent", "failed", "removed"] }).notNull(),
    platform: text().notNull(),
    title: text().notNull(),
    body: text().notNull(),
    error: text(),
    timestamp: integer().notNull(),
  },
  (table) => [index("push_logs_userId").on(table.userId, table.seq), index("push_logs_timestamp").on(table.timestamp)],
);
