import { and, asc, count, desc, eq, inArray, lte, ne } from "drizzle-orm";
import { sessions, users } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";
import type { RowOf } from "../../../db/query.ts";

export type SessionRow = typeof sessions.$inferSelect;

/** `provedAt`: when the user proved who they are. */
export const insertSession = writing(
  (
    db,
    v: Pick<
      SessionRow,
      "id" | "userId" | "createdAt" | "lastUsedAt" | "expiresAt" | "ip" | "userAgent" | "provedAt" | "invitation"
    >,
  ) =>
    db.insert(sessions).values({
      id: v.id,
      userId: v.userId,
      createdAt: v.createdAt,
      lastUsedAt: v.lastUsedAt,
      expiresAt: v.expiresAt,
      ip: v.ip,
      userAgent: v.userAgent,
      provedAt: v.provedAt,
      invitation: v.invitation,
    }),
);

export const sessionById = reading((db, v: { id: string }) => db.select().from(sessions).where(eq(sessions.id, v.id)));

export const newestSessions = reading((db, v: { userId: string; limit: number }) =>
  db
    .select()
    .from(sessions)
    .where(eq(sessions.userId, v.userId))
    .orderBy(desc(sessions.createdAt), desc(sessions.id))
    .limit(v.limit),
);

export const countSessions = reading((db, v: { userId: string }) =>
  db
    .select({ count: count().as("count") })
    .from(sessions)
    .where(eq(sessions.userId, v.userId)),
);

/** The session, with the state of its user, for a request with one of its tokens. */
export const liveSession = reading((db, v: { id: string }) =>
  db
    .select({
      userId: sessions.userId,
      expiresAt: sessions.expiresAt,
      tokenVersion: sessions.tokenVersion,
      invitation: sessions.invitation,
      role: users.role,
      email: users.email,
      emailVerified: users.emailVerified,
      phone: users.phone,
      isAnonymous: users.isAnonymous,
    })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.userId))
    .where(eq(sessions.id, v.id)),
);

export type LiveSession = RowOf<typeof liveSession>;

export const touchSession = writing(
  (db, v: Pick<SessionRow, "id" | "lastUsedAt" | "expiresAt" | "ip" | "userAgent" | "generation" | "rotations">) =>
    db
      .update(sessions)
      .set({
        lastUsedAt: v.lastUsedAt,
        expiresAt: v.expiresAt,
        ip: v.ip,
        userAgent: v.userAgent,
        generation: v.generation,
        rotations: v.rotations,
      })
      .where(eq(sessions.id, v.id)),
);

/** The user has just proved their identity with a new password: earlier access tokens count no longer. */
export const renewSession = writing((db, v: Pick<SessionRow, "id" | "provedAt" | "tokenVersion">) =>
  db.update(sessions).set({ provedAt: v.provedAt, tokenVersion: v.tokenVersion }).where(eq(sessions.id, v.id)),
);

export const deleteSession = writing((db, v: { id: string }) => db.delete(sessions).where(eq(sessions.id, v.id)));

export const deleteSessionsOfUser = writing((db, v: { userId: string }) =>
  db.delete(sessions).where(eq(sessions.userId, v.userId)).returning({ id: sessions.id }),
);

export const deleteOtherSessions = writing((db, v: { userId: string; id: string }) =>
  db
    .delete(sessions)
    .where(and(eq(sessions.userId, v.userId), ne(sessions.id, v.id)))
    .returning({ id: sessions.id }),
);

export const deleteOldestSessions = writing((db, v: { userId: string; limit: number }) => {
  const oldest = db
    .select({ id: sessions.id })
    .from(sessions)
    .where(eq(sessions.userId, v.userId))
    .orderBy(asc(sessions.createdAt), asc(sessions.id))
    .limit(v.limit);
  return db.delete(sessions).where(inArray(sessions.id, oldest)).returning({ id: sessions.id });
});

export const deleteLeastUsedSessions = writing((db, v: { userId: string; limit: number }) => {
  const leastUsed = db
    .select({ id: sessions.id })
    .from(sessions)
    .where(eq(sessions.userId, v.userId))
    .orderBy(asc(sessions.lastUsedAt), asc(sessions.id))
    .limit(v.limit);
  return db.delete(sessions).where(inArray(sessions.id, leastUsed)).returning({ id: sessions.id });
});

export const expiredSession = reading((db, v: { now: number }) =>
  db.select({ id: sessions.id }).from(sessions).where(lte(sessions.expiresAt, v.now)).limit(1),
);

/** Deletes at most `limit` expired sessions, so that one clean-up never delays other writes for long. */
export const deleteExpiredSessions = writing((db, v: { now: number; limit: number }) => {
  const expired = db.select({ id: sessions.id }).from(sessions).where(lte(sessions.expiresAt, v.now)).limit(v.limit);
  return db.delete(sessions).where(inArray(sessions.id, expired)).returning({ id: sessions.id });
});
