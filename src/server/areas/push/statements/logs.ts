import { and, asc, desc, eq, gt, inArray, lt, lte, sql } from "drizzle-orm";
import { pushLogs as logs } from "../../../../../schema/push.ts";
import { reading, writing } from "../../../db/declare-query.ts";

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

/** Rows are numbered without gaps, so those beyond the newest `kept` are found by their number. */
export const deleteLogsBeyond = writing((db, v: { kept: number }) =>
  db.delete(logs).where(lte(logs.seq, sql`(SELECT max(seq) FROM push_logs) - ${v.kept}`)),
);

interface LogRange {
  /** A time. */
  after: number;
  /** A number of a row. */
  before: number;
  limit: number;
}

/** Newest first. */
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

/** At most `limit`, so that one step never delays other writes for long. */
export const deleteExpiredLogs = writing((db, v: { until: number; limit: number }) => {
  const expired = db
    .select({ seq: logs.seq })
    .from(logs)
    .where(lte(logs.timestamp, v.until))
    .orderBy(asc(logs.timestamp))
    .limit(v.limit);
  return db.delete(logs).where(inArray(logs.seq, expired));
});
