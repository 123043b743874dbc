import { and, asc, eq, gt, sql } from "drizzle-orm";
import { userMarks, userRecords, users } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

const ROW = 1;

const followed = {
  id: users.id,
  seq: users.seq,
  displayName: users.displayName,
  avatarUrl: users.avatarUrl,
  isAnonymous: users.isAnonymous,
  email: users.email,
  emailVisibility: users.emailVisibility,
  createdAt: users.createdAt,
};

export const accountById = reading((db, v: { id: string }) =>
  db.select(followed).from(users).where(eq(users.id, v.id)),
);

/** Reads accounts in order of creation. */
export const accountsAfter = reading((db, v: { after: number; limit: number }) =>
  db.select(followed).from(users).where(gt(users.seq, v.after)).orderBy(asc(users.seq)).limit(v.limit),
);

export const following = reading((db) => db.select().from(userRecords).where(eq(userRecords.id, ROW)));

export const beginFollowing = writing((db) => db.insert(userRecords).values({ id: ROW, place: "" }));

export const endFollowing = writing((db) => db.delete(userRecords));

export const setFollowing = writing(
  (db, v: { place: string; lastMark: number; seenCount: number; lastAsked: number }) =>
    db
      .update(userRecords)
      .set({ place: v.place, lastMark: v.lastMark, seenCount: v.seenCount, lastAsked: v.lastAsked })
      .where(eq(userRecords.id, ROW)),
);

/** Takes the next number of a mark. */
export const nextMark = writing((db) =>
  db
    .update(userRecords)
    .set({ lastMark: sql`${userRecords.lastMark} + 1` })
    .where(eq(userRecords.id, ROW))
    .returning({ lastMark: userRecords.lastMark }),
);

export const relyOn = writing((db, v: { count: number }) =>
  db
    .update(userRecords)
    .set({ seenCount: sql`max(${userRecords.seenCount}, ${v.count})` })
    .where(eq(userRecords.id, ROW)),
);

export const setMark = writing((db, v: { userId: string; mark: number }) =>
  db
    .insert(userMarks)
    .values({ userId: v.userId, mark: v.mark })
    .onConflictDoUpdate({ target: userMarks.userId, set: { mark: v.mark } }),
);

export const markOf = reading((db, v: { userId: string }) =>
  db.select({ mark: userMarks.mark }).from(userMarks).where(eq(userMarks.userId, v.userId)),
);

export const markedUsers = reading((db, v: { after: number; limit: number }) =>
  db
    .select({ userId: userMarks.userId, mark: userMarks.mark })
    .from(userMarks)
    .where(gt(userMarks.mark, v.after))
    .orderBy(asc(userMarks.mark))
    .limit(v.limit),
);

/** Takes a mark off, unless there is a later one. */
export const deleteMark = writing((db, v: { userId: string; mark: number }) =>
  db.delete(userMarks).where(and(eq(userMarks.userId, v.userId), eq(userMarks.mark, v.mark))),
);

export const deleteMarks = writing((db) => db.delete(userMarks));
