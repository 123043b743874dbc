import { eq, gt, lte } from "drizzle-orm";
import { adminSessions as sessions } from "../../../../../schema/admin.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type SessionRow = typeof sessions.$inferSelect;

export const liveSessions = reading((db, v: { now: number }) =>
  db.select().from(sessions).where(gt(sessions.expiresAt, v.now)),
);

export const insertSession = writing((db, v: SessionRow) =>
  db.insert(sessions).values({
    id: v.id,
    key: v.key,
    stamp: v.stamp,
    lastUsedAt: v.lastUsedAt,
    expiresAt: v.expiresAt,
  }),
);

export const touchSession = writing((db, v: Pick<SessionRow, "id" | "lastUsedAt">) =>
  db.update(sessions).set({ lastUsedAt: v.lastUsedAt }).where(eq(sessions.id, v.id)),
);

export const deleteSession = writing((db, v: { id: string }) => db.delete(sessions).where(eq(sessions.id, v.id)));

export const deleteExpiredSessions = writing((db, v: { now: number }) =>
  db.delete(sessions).where(lte(sessions.expiresAt, v.now)),
);
